"""Writes ../codebooks.bin: the codebooks of the IQ formats, which are part of their definition, from gguf's tables.

Every entry is a little-endian 16-bit word of level numbers, the first in the lowest bits: eight of 2 bits for IQ1 and
IQ2, four of 3 bits for IQ3. The books follow each other in the order below.

Needs: pip install gguf (made with 0.19.0). Run it in this folder.
"""

import numpy as np
from gguf import quants

out = b""
for cls, bits in ((quants.IQ2_XXS, 2), (quants.IQ2_XS, 2), (quants.IQ2_S, 2), (quants.IQ3_XXS, 3), (quants.IQ3_S, 3), (quants.IQ1_S, 2)):
    cls.init_grid()
    grid = cls.grid.reshape(cls.grid_shape)
    levels = np.searchsorted(np.array(cls.grid_map, np.float32), grid).astype(np.uint32)
    shifts = np.arange(grid.shape[1], dtype=np.uint32) * bits
    out += (levels << shifts).sum(axis=1).astype("<u2").tobytes()
with open("../codebooks.bin", "wb") as f:
    f.write(out)
