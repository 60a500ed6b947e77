"""Writes formats.safetensors: random blocks of every format with the numbers that the reference implementations decode
them to, and numbers with the blocks that gguf encodes them to.

Needs: pip install gguf 'mlx[cpu]' (made with gguf 0.19.0, mlx 0.32.4, numpy 2.4.6). Run it in this folder.
"""

import json
import struct

import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as T

rng = np.random.default_rng(20)
tensors = {}

# Half-precision scales that go wrong first: zeros, subnormals, the smallest and largest normals, ones.
HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00, 0x2E66]

# Where each format keeps its half-precision scales.
HALF_AT = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ4_NL: [0], T.IQ4_XS: [0], T.TQ1_0: [52], T.TQ2_0: [64], T.MXFP4: [], T.NVFP4: [],
    T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0], T.IQ3_XXS: [0], T.IQ3_S: [0], T.IQ1_S: [0], T.IQ1_M: [],
}


def blocks(t):
    """Random blocks; the first ones have special scales, the rest ordinary ones."""
    size = gguf.GGML_QUANT_SIZES[t][1]
    special = len(HALVES) if HALF_AT[t] else 16
    n = special + 4
    b = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for k, at in enumerate(HALF_AT[t]):
        for i in range(n):
            h = HALVES[(i + 5 * k) % len(HALVES)] if i < special else None
            v = np.float16(rng.normal() * 0.01) if h is None else np.uint16(h).view(np.float16)
            b[i, at:at + 2] = np.frombuffer(v.tobytes(), np.uint8)
    if t == T.MXFP4:
        b[:16, 0] = [0, 1, 2, 3, 126, 127, 128, 253, 254, 255, 60, 100, 120, 124, 130, 140]
    if t == T.NVFP4:
        b[:8, :4] = np.array([0, 1, 7, 8, 0x7E, 0x7F, 0x38, 0x40, 0x80, 0xFF, 0xFE, 0x81] * 3)[:32].reshape(8, 4)
    return b


with np.errstate(all="ignore"):
    for t in HALF_AT:
        b = blocks(t)
        tensors[f"{t.name}.blocks"] = b.reshape(-1)
        tensors[f"{t.name}.values"] = gguf.dequantize(b, t).reshape(-1)

    # Encoders that must give gguf's bytes. Rows have outliers, constant blocks, zeros and tiny numbers.
    x = rng.normal(size=(12, 256)).astype(np.float32)
    x[1] *= 1e-3
    x[2, ::17] *= 30
    x[3] = 0
    x[4, :32] = 0.25
    x[5] *= 1e-7
    x[6] *= 500
    x[7] = np.round(x[7] * 4) / 4
    tensors["encode.source"] = x.reshape(-1)
    for t in (T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.MXFP4):
        tensors[f"encode.{t.name}"] = np.frombuffer(gguf.quantize(x, t).tobytes(), np.uint8)

# MLX's affine groups.
for name, dtype in (("F32", mx.float32), ("F16", mx.float16), ("BF16", mx.bfloat16)):
    for bits in (2, 3, 4, 5, 6, 8):
        group = {2: 32, 3: 64, 4: 64, 5: 32, 6: 128, 8: 32}[bits]
        rows, cols = 2, 256
        packed = mx.array(rng.integers(0, 2**32, (rows, cols * bits // 32), dtype=np.uint32))
        scales = mx.array(rng.normal(size=(rows, cols // group)) * 0.02).astype(dtype)
        biases = mx.array(rng.normal(size=(rows, cols // group)) * 0.3).astype(dtype)
        values = mx.dequantize(packed, scales, biases, group_size=group, bits=bits, stream=mx.cpu)
        assert values.dtype == dtype
        raw = (lambda a: np.array(a)) if dtype != mx.bfloat16 else (lambda a: np.array(a.view(mx.uint16)))
        base = f"mlx.{name}.{bits}.{group}"
        tensors[f"{base}.packed"] = np.frombuffer(np.array(packed).tobytes(), np.uint8)
        tensors[f"{base}.scales"] = np.frombuffer(raw(scales).tobytes(), np.uint8)
        tensors[f"{base}.biases"] = np.frombuffer(raw(biases).tobytes(), np.uint8)
        tensors[f"{base}.values"] = np.array(values.astype(mx.float32)).reshape(-1)

header, data = {}, b""
for name, a in tensors.items():
    raw = a.tobytes()
    dtype = {np.dtype(np.uint8): "U8", np.dtype(np.float32): "F32"}[a.dtype]
    header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
with open("formats.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + data)
