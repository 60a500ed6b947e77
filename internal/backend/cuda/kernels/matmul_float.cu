// Products with float weights, as the chain of NUMERICS.md: one fused multiply-add for each k, in segments of 512.
//
// Weights lie in groups of 32 rows as [K/V][32][V], where V numbers are 16 bytes: a lane of a warp has a row, and reads are one
// run of memory. TYPE is 0 for F32, 1 for F16, 2 for BF16; K is filled up with zeros to a multiple of V.
#include "common.cuh"

#if TYPE == 0
#define V 4
#else
#define V 8
#endif
#define SEGMENT 512

struct FloatArgs {
  const int* cols;      // number of columns (rows of the step)
  const int* expert;    // by tile of 8 columns; 0: one matrix
  const char* w[4];     // matrices that share the input
  float* y[4];
  const float* bias[4];
  int rows[4];
  int groups[4];        // where each one's groups end
  int y_stride[4];
  const float* x;
  long matrix_bytes;    // from one expert's or head's matrix to the next
  int x_stride, k, n;
  int head_x, head_y;   // from one head's values to the next
};

DEV void weights(float* w, uint4 raw) {
  const u32* u = (const u32*)&raw;
#pragma unroll
  for (int i = 0; i < 4; i++) {
#if TYPE == 0
    w[i] = bits(u[i]);
#elif TYPE == 1
    w[2 * i] = low_half(u[i]), w[2 * i + 1] = high_half(u[i]);
#else
    w[2 * i] = bits(u[i] << 16), w[2 * i + 1] = bits(u[i] & 0xffff0000u);
#endif
  }
}

// A block of threads has a group of rows and NC columns; its warps take segments in turn. A warp brings its columns' part of a
// segment to shared memory, PIECE numbers at a time, where all lanes read the same ones, and has the next weights under way.
#define PIECE 128
#define AHEAD 8  // vectors
template <int NC> DEV void multiply(const FloatArgs& p) {
  extern __shared__ __align__(16) float shared[];  // [warp][NC][PIECE], then [segment][NC][32]
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  float* xs = shared + warp * (NC * PIECE);
  float* sums = shared + warps * (NC * PIECE);
  int col0 = blockIdx.y * NC, g = blockIdx.x, m = 0;
  begin();
  int cols = *p.cols;
  if (col0 >= cols) return;
  while (m + 1 < p.n && g >= p.groups[m]) m++;
  if (m > 0) g -= p.groups[m - 1];
  int vectors = (p.k + V - 1) / V, segments = (p.k + SEGMENT - 1) / SEGMENT;
  long which = p.expert ? p.expert[col0 >> 3] : blockIdx.z;
  const uint4* w = (const uint4*)(p.w[m] + which * p.matrix_bytes) + (long)g * vectors * 32 + lane;
  const float* x = p.x + (long)blockIdx.z * p.head_x;
  for (int s = warp; s < segments; s += warps) {
    float acc[NC];
#pragma unroll
    for (int c = 0; c < NC; c++) acc[c] = 0;
    int end = min(p.k, (s + 1) * SEGMENT);
    for (int k0 = s * SEGMENT; k0 < end; k0 += PIECE) {
      int n = min(PIECE, end - k0), v0 = k0 / V;
      uint4 raw[AHEAD];
#pragma unroll
      for (int v = 0; v < AHEAD; v++)
        if (v * V < n) raw[v] = w[(long)(v0 + v) * 32];
      __syncwarp();
#pragma unroll
      for (int c = 0; c < NC; c++)
        for (int i = lane; i < PIECE; i += 32) xs[c * PIECE + i] = i < n && col0 + c < cols ? x[(long)(col0 + c) * p.x_stride + k0 + i] : 0;
      __syncwarp();
      auto chain = [&](const float* f, int at) {
#pragma unroll
        for (int c = 0; c < NC; c++) {
#pragma unroll
          for (int i = 0; i < V; i += 4) {
            float4 y = *(const float4*)(xs + c * PIECE + at + i);
            acc[c] = fma(f[i], y.x, acc[c]);
            acc[c] = fma(f[i + 1], y.y, acc[c]);
            acc[c] = fma(f[i + 2], y.z, acc[c]);
            acc[c] = fma(f[i + 3], y.w, acc[c]);
          }
        }
      };
      if (n == PIECE) {
#pragma unroll
        for (int v = 0; v < PIECE / V; v++) {
          float f[V];
          weights(f, raw[v % AHEAD]);
          if (v + AHEAD < PIECE / V) raw[v % AHEAD] = w[(long)(v0 + v + AHEAD) * 32];
          chain(f, v * V);
        }
      } else {
        for (int v = 0; v * V < n; v++) {
          float f[V];
          weights(f, w[(long)(v0 + v) * 32]);
          if (v * V + V <= n) {
            chain(f, v * V);
          } else {
            for (int i = 0; v * V + i < n; i++) {
              float one = f[0];
#pragma unroll
              for (int e = 1; e < V; e++) one = e == i ? f[e] : one;
#pragma unroll
              for (int c = 0; c < NC; c++) acc[c] = fma(one, xs[c * PIECE + v * V + i], acc[c]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < NC; c++) sums[(s * NC + c) * 32 + lane] = acc[c];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < NC * 32; i += blockDim.x) {
    int row = g * 32 + (i & 31), c = col0 + (i >> 5);
    if (row >= p.rows[m] || c >= cols) continue;
    float y = 0;
    for (int s = 0; s < segments; s++) y = y + sums[s * NC * 32 + i];
    if (p.bias[m]) y = y + p.bias[m][row];
    p.y[m][(long)c * p.y_stride[m] + blockIdx.z * p.head_y + row] = y;
  }
}
KERNEL float_1(FloatArgs p) { multiply<1>(p); }
KERNEL float_8(FloatArgs p) { multiply<8>(p); }
KERNEL float_32(FloatArgs p) { multiply<32>(p); }
