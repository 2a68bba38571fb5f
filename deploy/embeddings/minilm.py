"""all-MiniLM-L6-v2 in numpy: embeds sequences of word pieces."""
import math

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf

HEADS, LAYERS, WIDTH = 12, 6, 384
CLS, SEP = 101, 102
MAX_PIECES = 256  # per text, [CLS] and [SEP] included, as in the model's training


class MiniLM:
    def __init__(self, path):
        self.w = {name: w.astype(np.float32) for name, w in load_file(path).items() if w.dtype.kind == "f"}
        self.pieces = len(self.w["embeddings.word_embeddings.weight"])

    def _norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def _dense(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def _attention(self, x, name):
        n, length, _ = x.shape
        q, k, v = (
            self._dense(x, f"{name}.self.{part}").reshape(n, length, HEADS, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        a = q @ k.transpose(0, 1, 3, 2) / np.float32(math.sqrt(WIDTH // HEADS))
        a = np.exp(a - a.max(-1, keepdims=True))
        a /= a.sum(-1, keepdims=True)
        mixed = (a @ v).transpose(0, 2, 1, 3).reshape(n, length, WIDTH)
        return self._norm(x + self._dense(mixed, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def outputs(self, ids):
        """The means of the model's outputs over sequences of one length, [CLS] and [SEP] included."""
        w = self.w
        x = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            x = self._attention(x, name + ".attention")
            h = self._dense(x, name + ".intermediate.dense")
            h = np.float32(0.5) * h * (1 + erf(h / np.float32(math.sqrt(2))))
            x = self._norm(x + self._dense(h, name + ".output.dense"), name + ".output.LayerNorm")
        return x.mean(1)

    def of_pieces(self, batch=512):
        """The model's embedding of each single word piece."""
        ids = np.arange(self.pieces)
        return np.concatenate(
            [
                self.outputs(np.stack([np.full_like(i, CLS), i, np.full_like(i, SEP)], 1))
                for i in np.split(ids, range(batch, self.pieces, batch))
            ]
        )

    def of_texts(self, texts, batch=4096):
        """The unit vectors of texts, given as lists of word pieces. Batches hold texts of one length, so there is no padding."""
        out = np.zeros((len(texts), WIDTH), np.float32)
        texts = [[CLS, *t[: MAX_PIECES - 2], SEP] for t in texts]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        while order:
            length = len(texts[order[0]])
            most = max(1, batch // length)
            now = [i for i in order[:most] if len(texts[i]) == length]
            order = order[len(now) :]
            out[now] = self.outputs(np.array([texts[i] for i in now]))
        return out / np.linalg.norm(out, axis=1, keepdims=True)
