"""What computes is a dimension; a point on a graphics processor has one thread."""

from __future__ import annotations

from dataclasses import replace

from powerlab.analysis.dimensions import in_words
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor, Workload
from powerlab.reports.reproduce import profile_command

PLAN = SweepPlan(models=("alexnet",), threads=(1, 2, 4), processors=(Processor.CPU, Processor.GPU), batch_sizes=(1, 8))


def test_threads_are_a_dimension_of_the_cores_alone():
    found = {(point.workload.processor.value, point.threads) for point in PLAN.points()}
    assert found == {("cpu", 1), ("cpu", 2), ("cpu", 4), ("gpu", 1)}
    assert PLAN.point_count == len(PLAN.points()) == len({point.id for point in PLAN.points()}) == 8


def test_stored_points_on_the_cores_keep_their_id():
    point = Point(workload=Workload(model="alexnet", batch_size=1), threads=2, mode="current")
    assert point.id == "a147b51074f1d0df"


def test_queues_are_a_dimension_of_slices_on_a_graphics_processor():
    plan = replace(PLAN, threads=(4,), batch_sizes=(8,), slices=(1, 2, 4), queues=(1, 2, 4))
    found = [(one.workload.processor.value, one.workload.slices, one.workload.queues) for one in plan.points()]
    on_card = [(slices, queues) for processor, slices, queues in found if processor == "gpu"]
    assert on_card == [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]
    assert {queues for processor, _, queues in found if processor == "cpu"} == {1}
    assert plan.point_count == len(plan.points()) == len({point.id for point in plan.points()}) == 9
    assert in_words(plan.points()[-1]) == "alexnet, gpu, batch 8, 4 slices, 4 queues, mode current"
    assert "--slices 1,2,4 --queues 1,2,4" in profile_command(plan)


def test_words_say_the_processor_only_where_it_is_not_the_cores():
    cores, card = (
        Point(workload=Workload(model="alexnet", batch_size=1, processor=one), threads=1, mode="current")
        for one in Processor
    )
    assert in_words(cores) == "alexnet, batch 1, 1 thread, mode current"
    assert in_words(card) == "alexnet, gpu, batch 1, mode current"
