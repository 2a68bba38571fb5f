"""The model that the table is distilled from, run by ONNX Runtime."""
import numpy as np
import onnxruntime

CLS, SEP = 101, 102
MAX_PIECES = 256  # of a text, [CLS] and [SEP] included, as in the model's training
BATCH = 6_000  # word pieces


class Teacher:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def embed(self, texts):
        """The unit vectors of texts, which are lists of word pieces: means of the outputs for all pieces, [CLS] and [SEP] included."""
        texts = [[CLS, *t[: MAX_PIECES - 2], SEP] for t in texts]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # texts of a batch are of similar length
        found = None
        while order:
            now = order[: max(1, BATCH // len(texts[order[0]]))]
            order = order[len(now) :]
            mask = np.zeros((len(now), len(texts[now[-1]])), np.int64)
            ids = np.zeros_like(mask)
            for row, i in enumerate(now):
                ids[row, : len(texts[i])] = texts[i]
                mask[row, : len(texts[i])] = 1
            outputs = self.session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
            means = (outputs * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            if found is None:
                found = np.zeros((len(texts), means.shape[1]), np.float32)
            found[now] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return found
