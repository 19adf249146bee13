"""Whether YOLOv3-tiny learns to find boxes: the loss, and the objects found, on images that it did not see.

    python -m bench.training.boxes --steps 200

Images are made by code: one bright square or disc of one of two classes, in noise. The zoo's weights are random ones,
so everything is learnt here. An object is found where the box of the highest objectness overlaps its own by half and
has its class.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from powerlab.engine.training import Adam, TrainingSession

SIZE, BATCH, TESTED = 96, 8, 64
PRIORS = np.array([(10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319)]) / 416

Floats = NDArray[np.float32]


def images(random: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Return images (count, 3, 96, 96) and the box of the object in each, (count, 1, 5)."""
    kinds, size = random.integers(0, 2, count), random.uniform(0.25, 0.6, count)
    centres = random.uniform(0, 1, (count, 2)) * (1 - size[:, None]) + size[:, None] / 2
    places = (np.arange(SIZE) + 0.5) / SIZE
    across, down = (abs(places - centre[:, None]) for centre in centres.T)
    half = size[:, None, None] / 2
    square = np.maximum(across[:, None], down[:, :, None]) < half
    disc = np.hypot(across[:, None], down[:, :, None]) < half
    drawn = np.where(kinds[:, None, None] == 0, square, disc)[:, None] * random.uniform(0.5, 1, (count, 3, 1, 1))
    x = drawn + random.normal(0, 0.2, (count, 3, SIZE, SIZE))
    return x.astype(np.float32), np.column_stack([kinds, centres, size, size]).astype(np.float32)[:, None]


def best_boxes(outputs: list[Floats]) -> Floats:
    """Return the box of the highest objectness of each image, as labels have it."""
    found = []
    for number, output in enumerate(outputs):
        count, channels, rows, columns = output.shape
        raw = output.reshape(count, 3, channels // 3, rows, columns).astype(np.float64)
        x = (np.arange(columns) + 1 / (1 + np.exp(-raw[:, :, 0]))) / columns
        y = (np.arange(rows)[:, None] + 1 / (1 + np.exp(-raw[:, :, 1]))) / rows
        prior = PRIORS[3 * (1 - number) : 3 * (1 - number) + 3][None, :, None, None]
        width, height = (np.exp(raw[:, :, 2 + axis]) * prior[..., axis] for axis in (0, 1))
        boxes = np.stack([raw[:, :, 4], raw[:, :, 5:].argmax(axis=2), x, y, width, height], axis=-1)
        found.append(boxes.reshape(count, -1, 6))
    every = np.concatenate(found, axis=1)
    return every[np.arange(len(every)), every[:, :, 0].argmax(axis=1), 1:].astype(np.float32)


def found_percent(boxes: Floats, wanted: Floats) -> float:
    """Return how many of the objects the boxes find, in percent."""
    low = np.maximum(boxes[:, 1:3] - boxes[:, 3:] / 2, wanted[:, 1:3] - wanted[:, 3:] / 2)
    high = np.minimum(boxes[:, 1:3] + boxes[:, 3:] / 2, wanted[:, 1:3] + wanted[:, 3:] / 2)
    both = np.maximum(high - low, 0).prod(axis=1)
    overlaps = both / (boxes[:, 3:].prod(axis=1) + wanted[:, 3:].prod(axis=1) - both)
    return 100 * float(np.mean((overlaps > 0.5) & (boxes[:, 0] == wanted[:, 0])))


def main() -> None:
    """Train, and print what was learnt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=50, help="steps from one look at other images to the next")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slices", type=int, default=1)
    asked = parser.parse_args()
    training = TrainingSession(
        f"yolov3-tiny@{SIZE}",
        "yolov3",
        Adam(rate=0.001),
        batch_size=BATCH,
        threads=asked.threads,
        slices=asked.slices,
    )
    random, others = np.random.default_rng(1), images(np.random.default_rng(2), TESTED)
    table = Table("steps", "loss of the latest", "objects found, %", "seconds")
    begin, loss = time.monotonic(), float("nan")
    for step in range(asked.steps + 1):
        if step % asked.every == 0 or step == asked.steps:
            parts = [training.answers({"x": others[0][at : at + BATCH]}) for at in range(0, TESTED, BATCH)]
            boxes = np.concatenate([best_boxes(list(part.values())) for part in parts])
            found = found_percent(boxes, others[1][:, 0])
            table.add_row(str(step), f"{loss:.2f}", f"{found:.0f}", f"{time.monotonic() - begin:.0f}")
        if step < asked.steps:
            loss = training.step(*images(random, BATCH))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
