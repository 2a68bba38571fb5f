"""Makes the table of static embeddings in pkg/recall/static from all-MiniLM-L6-v2, or verifies it.

usage: distill.py MODEL WORDNET FOLDER [--verify]

MODEL is the folder of the model and WORDNET the folder of WordNet's data files. FOLDER
receives table.bin, vocab.txt and testdata/pieces.json, the word pieces of the texts in
that folder. With --verify the files are compared instead of written: the word pieces must
be the same, and cosines between texts within TOLERANCE. Bits differ between versions of
numpy and between processors.

The table has a row for each word piece; a text is the sum of its pieces' rows.

1. m = the model's embedding of the piece alone; zero for special and unused pieces.
2. w = a/(a + p), where p is the piece's share of texts by Zipf's law, computed from its id
   because ids are sorted by frequency (S. Arora et al., A Simple but Tough-to-Beat Baseline
   for Sentence Embeddings, 2017). E0 = w (m - mean m).
3. The rows E that best approximate the model's embeddings of TEXTS whole texts and stay
   near E0: they minimize |XE - Y|^2 + RIDGE |E - E0|^2, where X has the share of each piece
   in each text, by a fixed number of steps of conjugate gradients.
4. The DIMENSIONS with the most variance over these texts. A row is int8 with its scale.
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

import wordnet
from minilm import MiniLM

DIMENSIONS = 128
TEXTS = 24_000
RIDGE = 0.3
STEPS = 15
SIF = 1e-4
TOLERANCE = 0.01
THE = 1996  # the id of "the", the most frequent word


def weights(n):
    """SIF weights by the rank of a piece. Pieces before "the" are single characters, of medium frequency."""
    ids = np.arange(n)
    rank = np.where(ids < THE, 8, ids - THE + 1)
    q = 1 / (rank + 1.7)
    p = q / q.sum()
    return (SIF / (SIF + p)).astype(np.float32)[:, None]


def shares(texts, n):
    """A matrix with each piece's share of each text."""
    rows = [row for row, t in enumerate(texts) for _ in t]
    values = [1 / len(t) for t in texts for _ in t]
    columns = [piece for t in texts for piece in t]
    return sparse.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(len(texts), n))


def ridge(x, y, e0):
    """argmin |x e - y|^2 + RIDGE |e - e0|^2, all columns at once."""
    xt = x.T.tocsr()
    r = xt @ (y - x @ e0)
    d, p, rr = np.zeros_like(r), r.copy(), (r * r).sum(0)
    for _ in range(STEPS):
        ap = xt @ (x @ p) + np.float32(RIDGE) * p
        step = rr / np.maximum((p * ap).sum(0), 1e-20)
        d += step * p
        r -= step * ap
        before, rr = rr, (r * r).sum(0)
        p = r + rr / np.maximum(before, 1e-20) * p
    return e0 + d


def principal(x, e):
    """Projects the rows onto the directions of greatest variance over texts. The largest component gives a direction its sign."""
    texts = (x @ e).astype(np.float64)
    v = np.linalg.eigh(texts.T @ texts)[1][:, ::-1][:, :DIMENSIONS]
    v = v * np.sign(v[np.abs(v).argmax(0), np.arange(v.shape[1])])
    return (e @ v).astype(np.float32)


def quantised(e):
    scale = (np.abs(e).max(1, keepdims=True) / 127).astype("<f4")
    rows = np.rint(e / np.where(scale == 0, 1, scale)).astype(np.int8)
    return scale, rows


def fresh(model_folder, tokenizer, wordnet_folder):
    """The scales, the rows, and the texts as shares."""
    started = time.monotonic()
    tell = lambda what: print(f"{time.monotonic() - started:4.0f} s  {what}", flush=True)
    vocabulary = (model_folder / "vocab.txt").read_text().splitlines()
    model = MiniLM(model_folder / "model.safetensors")
    texts = pieces(tokenizer, wordnet.sample(wordnet_folder, TEXTS))

    tell(f"the model reads {len(vocabulary)} word pieces")
    m = model.of_pieces()
    used = np.array([not (p.startswith("[") and p.endswith("]") and len(p) > 2) for p in vocabulary])
    e0 = (m - m[used].mean(0)) * weights(len(m))
    e0[~used] = 0

    tell(f"the model reads {len(texts)} texts")
    y = model.of_texts(texts)
    tell("the rows are fitted")
    x = shares(texts, len(m))
    p = x @ e0
    e = ridge(x, y, e0 * ((p * y).sum() / (p * p).sum()))
    e[~used] = 0
    scale, rows = quantised(principal(x, e))
    tell("done")
    return scale, rows, x


def pieces(tokenizer, texts):
    return [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def read(path):
    content = path.read_bytes()
    n, width = struct.unpack_from("<II", content)
    scale = np.frombuffer(content, "<f4", n, 8).reshape(n, 1)
    return scale, np.frombuffer(content, np.int8, n * width, 8 + 4 * n).reshape(n, width)


def unit(x, scale, rows):
    v = x @ (scale * rows)
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-20)


def verify(folder, files, scale, rows, x):
    """How far the cosines between consecutive texts differ from those of the table in folder."""
    for name, content in files.items():
        if (folder / name).read_bytes() != content:
            sys.exit(f"{name} differs")
    there = read(folder / "table.bin")
    if there[1].shape != rows.shape:
        sys.exit(f"table.bin has {there[1].shape} rows and dimensions, a fresh one {rows.shape}")
    cosines = [(v[1:] * v[:-1]).sum(1) for v in (unit(x, *there), unit(x, scale, rows))]
    most = np.abs(cosines[0] - cosines[1]).max()
    print(f"cosines between {len(cosines[0]) + 1} texts differ by {most:.5f} at most, {TOLERANCE} is allowed")
    sys.exit(0 if most <= TOLERANCE else 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("wordnet", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verify", action="store_true")
    a = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(a.model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tests = a.folder / "testdata"
    golden = pieces(tokenizer, json.loads((tests / "texts.json").read_text()))
    files = {
        "vocab.txt": (a.model / "vocab.txt").read_bytes(),
        "testdata/pieces.json": ("[\n" + ",\n".join(json.dumps(ids) for ids in golden) + "\n]\n").encode(),
    }
    scale, rows, x = fresh(a.model, tokenizer, a.wordnet)
    if a.verify:
        verify(a.folder, files, scale, rows, x)
    for name, content in files.items():
        (a.folder / name).write_bytes(content)
    (a.folder / "table.bin").write_bytes(struct.pack("<II", *rows.shape) + scale.tobytes() + rows.tobytes())


if __name__ == "__main__":
    main()
