"""Every rule. A function's name with dashes is the rule's name in findings."""

from __future__ import annotations

from powerlab.measure.rules.background_load import background_load
from powerlab.measure.rules.base import Rule
from powerlab.measure.rules.clock_jump import clock_jump
from powerlab.measure.rules.idle_drift import idle_drift
from powerlab.measure.rules.implausible_power import implausible_power
from powerlab.measure.rules.in_step import in_step
from powerlab.measure.rules.inaccurate import inaccurate
from powerlab.measure.rules.incomplete_total import incomplete_total
from powerlab.measure.rules.latency_bound import latency_bound
from powerlab.measure.rules.missing_idle import missing_idle
from powerlab.measure.rules.missing_power import missing_power
from powerlab.measure.rules.mode_drift import mode_drift
from powerlab.measure.rules.negative_power import negative_power
from powerlab.measure.rules.power_gap import power_gap
from powerlab.measure.rules.sampling_load import sampling_load
from powerlab.measure.rules.stale_sensor import stale_sensor
from powerlab.measure.rules.stalled import stalled
from powerlab.measure.rules.suspended import suspended
from powerlab.measure.rules.throttled import throttled
from powerlab.measure.rules.too_few_samples import too_few_samples
from powerlab.measure.rules.uncovered_processor import uncovered_processor
from powerlab.measure.rules.unsteady import unsteady
from powerlab.measure.rules.unsteady_temperature import unsteady_temperature
from powerlab.measure.rules.window_too_short import window_too_short

RULES: tuple[Rule, ...] = (
    missing_power,
    incomplete_total,
    uncovered_processor,
    in_step,
    window_too_short,
    power_gap,
    stale_sensor,
    negative_power,
    implausible_power,
    suspended,
    clock_jump,
    mode_drift,
    throttled,
    background_load,
    sampling_load,
    stalled,
    unsteady,
    unsteady_temperature,
    missing_idle,
    idle_drift,
    too_few_samples,
    latency_bound,
    inaccurate,
)
