"""What is in a picture of clothes: accuracy on a half of the pictures to predict."""

from __future__ import annotations

import functools
import gzip
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from operant.envs.research.grading import Work
from operant.envs.research.kit.tables import ANSWER, SAMPLE, Division, divide, predictions, sample

TARGET = "label"
TRAIN, HALF = 3000, 1000
SIDE = 28
IMAGES_HEADER, LABELS_HEADER = 16, 8


def files(data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
    """Pictures as arrays of bytes, the labels of those to learn from, and a sample that says 0 of all."""
    images, labels = pictures(data["images"], data["labels"])
    parts = division(data["images"], data["labels"], seed)
    return {
        "train_images.npy": saved(images[list(parts.train)]),
        "train_labels.npy": saved(labels[list(parts.train)]),
        "test_images.npy": saved(images[list(parts.test)]),
        SAMPLE: sample(TARGET, len(parts.test), "0"),
    }


def grade(work: Work) -> float:
    """The share of pictures that were named rightly."""
    _, labels = pictures(work.data["images"], work.data["labels"])
    parts = division(work.data["images"], work.data["labels"], work.problem)
    said = predictions(work.text(ANSWER), TARGET, len(parts.test))
    places = parts.places(work.split)
    return float((said[places] == labels[list(parts.test)][places]).mean())


@functools.lru_cache(maxsize=2)
def pictures(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """The pictures [n, 28, 28] and their labels, from files in the form of MNIST's."""
    shown = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=IMAGES_HEADER)
    named = np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=LABELS_HEADER)
    return shown.reshape(-1, SIDE, SIDE), named


@functools.lru_cache(maxsize=64)
def division(images: Path, labels: Path, seed: int) -> Division:
    """How a problem divides them; both halves have as many of each kind."""
    shown, named = pictures(images, labels)
    return divide([picture.tobytes() for picture in shown], [int(label) for label in named], seed, TRAIN, HALF)


def saved(array: np.ndarray) -> bytes:
    """An array as a file of numpy's."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
