"""What computes is a dimension; a point on a graphics processor has one thread."""

from __future__ import annotations

from powerlab.analysis.dimensions import in_words
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor, Workload

PLAN = SweepPlan(models=("alexnet",), threads=(1, 2, 4), processors=(Processor.CPU, Processor.GPU), batch_sizes=(1, 8))


def test_threads_are_a_dimension_of_the_cores_alone():
    found = {(point.workload.processor.value, point.threads) for point in PLAN.points()}
    assert found == {("cpu", 1), ("cpu", 2), ("cpu", 4), ("gpu", 1)}
    assert PLAN.point_count == len(PLAN.points()) == len({point.id for point in PLAN.points()}) == 8


def test_stored_points_on_the_cores_keep_their_id():
    point = Point(workload=Workload(model="alexnet", batch_size=1), threads=2, mode="current")
    assert point.id == "a147b51074f1d0df"


def test_words_say_the_processor_only_where_it_is_not_the_cores():
    cores, card = (
        Point(workload=Workload(model="alexnet", batch_size=1, processor=one), threads=1, mode="current")
        for one in Processor
    )
    assert in_words(cores) == "alexnet, batch 1, 1 thread, mode current"
    assert in_words(card) == "alexnet, gpu, batch 1, 1 thread, mode current"
