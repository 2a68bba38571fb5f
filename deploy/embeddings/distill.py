"""Makes the table of static embeddings in pkg/recall/static from all-MiniLM-L6-v2, or verifies it.

usage: distill.py SOURCES FOLDER [--verify]

SOURCES is the folder with model.onnx, tokenizer.json, the folder wordnet and Translation-en.xz.
FOLDER receives table.bin, vocab.txt and testdata/pieces.json, the word pieces of the texts in
that folder. With --verify the files are compared instead of written: the word pieces must be
the same, and cosines between texts within TOLERANCE, 99 of 100 times. Bits differ between
versions of numpy and between processors.

The table has a row for each word piece; a text is the sum of its pieces' rows.

1. y = the model's embedding of a text, minus the mean of all texts, in the DIMENSIONS with the
   most variance, of length 1.
2. m = the model's embedding of a piece alone, in the same space; zero for special and unused
   pieces. w = a/(a + p), where p is the piece's share of texts by Zipf's law, computed from its
   id because ids are sorted by frequency (S. Arora et al., A Simple but Tough-to-Beat Baseline
   for Sentence Embeddings, 2017). The rows begin as w (m - mean m), scaled to fit.
3. EPOCHS passes of Adam (D. Kingma, J. Ba, 2015) turn each text's sum toward its y: the loss is
   1 - cosine. More passes fit these texts better, and others worse.
4. A row is int8 with its scale.
"""
import argparse
import json
import struct
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from tokenizers import Tokenizer

import texts
from teacher import Teacher

DIMENSIONS = 128
EPOCHS = 8
BATCH = 2048
RATE = 1e-3  # of the first step; it falls to 0
SIF = 1e-4
TOLERANCE = 0.02
THE = 1996  # the id of "the", the most frequent word

started = time.monotonic()


def tell(what):
    print(f"{time.monotonic() - started:4.0f} s  {what}", flush=True)


def unit(v):
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)


def weights(n):
    """SIF weights by the rank of a piece. Pieces before "the" are single characters, of medium frequency."""
    ids = np.arange(n)
    rank = np.where(ids < THE, 8, ids - THE + 1)
    q = 1 / (rank + 1.7)
    p = q / q.sum()
    return (SIF / (SIF + p)).astype(np.float32)[:, None]


def shares(pieces, n):
    """A matrix with each piece's share of each text."""
    rows = np.repeat(np.arange(len(pieces)), [len(t) for t in pieces])
    values = np.concatenate([np.full(len(t), 1 / len(t), np.float32) for t in pieces])
    return sparse.csr_matrix((values, (rows, np.concatenate(pieces))), shape=(len(pieces), n))


def principal(y):
    """The directions of most variance. The largest component gives a direction its sign."""
    v = np.linalg.eigh((y.T @ y).astype(np.float64))[1][:, ::-1][:, :DIMENSIONS]
    return (v * np.sign(v[np.abs(v).argmax(0), np.arange(v.shape[1])])).astype(np.float32)


def fitted(x, y, e):
    """The rows e after EPOCHS passes over the texts."""
    random = np.random.default_rng(1)
    first, second, step = np.zeros_like(e), np.zeros_like(e), 0
    steps = EPOCHS * -(-len(y) // BATCH)
    for epoch in range(EPOCHS):
        order, loss = random.permutation(len(y)), 0
        for at in range(0, len(y), BATCH):
            batch = np.sort(order[at : at + BATCH])
            some = x[batch]
            sums = some @ e
            length = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
            u = sums / length
            cosine = (u * y[batch]).sum(1, keepdims=True)
            loss += (1 - cosine).sum()
            gradient = some.T @ ((cosine * u - y[batch]) / length / len(batch))
            step += 1
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            rate = RATE * (1 - step / steps) / (1 - 0.9**step)
            e = e - rate * first / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        tell(f"pass {epoch + 1} of {EPOCHS}: loss {loss / len(y):.4f}")
    return e


def quantised(e):
    scale = (np.abs(e).max(1, keepdims=True) / 127).astype("<f4")
    rows = np.rint(e / np.where(scale == 0, 1, scale)).astype(np.int8)
    return scale, rows


def fresh(sources, tokenizer, vocabulary):
    """The scales, the rows, and the texts as shares."""
    model = Teacher(sources / "model.onnx")
    pieces = encoded(tokenizer, texts.read(sources / "wordnet", sources / "Translation-en.xz"))
    pieces = [t for t in pieces if t]
    tell(f"the model reads {len(vocabulary)} word pieces")
    m = model.embed([[i] for i in range(len(vocabulary))])
    used = np.array([not (p.startswith("[") and p.endswith("]") and len(p) > 2) for p in vocabulary])
    tell(f"the model reads {len(pieces)} texts")
    y = model.embed(pieces)
    y = unit(y - y.mean(0))
    directions = principal(y)
    y = unit(y @ directions)
    e = (m - m[used].mean(0)) * weights(len(m)) @ directions
    e[~used] = 0
    x = shares(pieces, len(m))
    sums = x @ e
    e = fitted(x, y, (e * ((sums * y).sum() / (sums * sums).sum())).astype(np.float32))
    e[~used] = 0
    scale, rows = quantised(e)
    return scale, rows, x


def encoded(tokenizer, list_of_texts):
    return [e.ids for e in tokenizer.encode_batch(list_of_texts, add_special_tokens=False)]


def read(path):
    content = path.read_bytes()
    n, width = struct.unpack_from("<II", content)
    scale = np.frombuffer(content, "<f4", n, 8).reshape(n, 1)
    return scale, np.frombuffer(content, np.int8, n * width, 8 + 4 * n).reshape(n, width)


def verify(folder, files, scale, rows, x):
    """How far the cosines between consecutive texts differ from those of the table in folder."""
    for name, content in files.items():
        if (folder / name).read_bytes() != content:
            sys.exit(f"{name} differs")
    there = read(folder / "table.bin")
    if there[1].shape != rows.shape:
        sys.exit(f"table.bin has {there[1].shape} rows and dimensions, a fresh one {rows.shape}")
    cosines = [(v[1:] * v[:-1]).sum(1) for v in (unit(x @ (s * r)) for s, r in (there, (scale, rows)))]
    most = np.quantile(np.abs(cosines[0] - cosines[1]), 0.99)
    print(f"99 % of the cosines between {len(cosines[0]) + 1} texts differ by less than {most:.5f}; {TOLERANCE} is allowed")
    sys.exit(0 if most <= TOLERANCE else 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verify", action="store_true")
    a = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(a.sources / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.get_vocab()
    vocabulary = sorted(ids, key=ids.get)
    golden = encoded(tokenizer, json.loads((a.folder / "testdata" / "texts.json").read_text()))
    files = {
        "vocab.txt": "".join(piece + "\n" for piece in vocabulary).encode(),
        "testdata/pieces.json": ("[\n" + ",\n".join(json.dumps(ids) for ids in golden) + "\n]\n").encode(),
    }
    scale, rows, x = fresh(a.sources, tokenizer, vocabulary)
    if a.verify:
        verify(a.folder, files, scale, rows, x)
    for name, content in files.items():
        (a.folder / name).write_bytes(content)
    (a.folder / "table.bin").write_bytes(struct.pack("<II", *rows.shape) + scale.tobytes() + rows.tobytes())


if __name__ == "__main__":
    main()
