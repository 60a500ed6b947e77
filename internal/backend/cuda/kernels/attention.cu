// The cache of keys and values, and attention over it.
//
// A layer's part of a page holds, head by head, the keys of 32 positions as [KDim/V][32][V] and their values as [32][VDim],
// where V numbers are 16 bytes and KDim is rounded up to V. So the 32 lanes of a warp read one dimension's vector of all
// keys of a page as one run of memory.
#include "common.cuh"

#define PAGE 32
#define CHUNK 512
#define THREADS 128

template <typename T> struct Vec;
template <> struct Vec<u16> { enum { N = 8 }; };
template <> struct Vec<float> { enum { N = 4 }; };
DEV float wide(u16 v) { return half_to_float(v); }
DEV float wide(float v) { return v; }
DEV void narrow(u16* p, float v) { *p = float_to_half(v); }
DEV void narrow(float* p, float v) { *p = v; }

// The page tables of a step: for each sequence `stride` entries.
struct Tables {
  const int* pages;
  const int* stride;
};

struct StoreArgs {
  const int* rows;
  const int* pos;
  const int* seq;
  Tables tables;
  const float* k;
  const float* v;  // 0: values are parts of the keys
  char* base;
  long page_bytes;
  int k_stride, v_stride, heads, kdim, vdim;
  int head_bytes, v_off;
};

template <typename T> DEV void store_kv(const StoreArgs& p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (row >= *p.rows) return;
  int pos = p.pos[row];
  char* page = p.base + p.page_bytes * p.tables.pages[(long)p.seq[row] * *p.tables.stride + pos / PAGE];
  int slot = pos % PAGE;
  if (i < p.heads * p.kdim) {
    int h = i / p.kdim, d = i % p.kdim;
    const int N = Vec<T>::N;
    narrow((T*)(page + h * p.head_bytes) + (d / N * PAGE + slot) * N + d % N, p.k[(long)row * p.k_stride + i]);
  }
  if (p.v && i < p.heads * p.vdim) {
    int h = i / p.vdim, d = i % p.vdim;
    narrow((T*)(page + h * p.head_bytes + p.v_off) + slot * p.vdim + d, p.v[(long)row * p.v_stride + i]);
  }
}
KERNEL store_kv_f16(StoreArgs p) { store_kv<u16>(p); }
KERNEL store_kv_f32(StoreArgs p) { store_kv<float>(p); }

struct AttendArgs {
  const int* rows;   // number of tiles
  const int* tiles;  // {first row, number of rows} of each
  const int* pos;
  const int* seq;
  Tables tables;
  const float* q;
  float* out;
  const float* sinks;
  float* parts;  // [row][head][chunk]{m, l, o[vdim]}
  const char* base;
  long page_bytes;
  int q_stride, out_stride;
  int heads, group;  // query heads; those that share a key head
  int per_tile;      // heads of one block of threads
  int kdim, vdim, head_bytes, v_off, v_in_k;
  int window, split;  // split: a block of threads takes one chunk and leaves its results in parts
  int chunks;         // of parts
  float scale, cap;
};

// A block of threads computes NQ query rows of one key head: those of `per_tile` heads for the rows of a tile. Query i is
// head i%per_tile of row i/per_tile.
template <typename T, int NQ> DEV void attend(const AttendArgs& p) {
  extern __shared__ float mem[];
  const int N = Vec<T>::N;
  float* scores = mem;                   // [CHUNK][NQ]
  float* q = scores + CHUNK * NQ;        // [kdim rounded up][NQ]
  int kpad = (p.kdim + N - 1) / N * N;
  float* state = q + kpad * NQ;          // [NQ][vdim], merged so far
  __shared__ float sm[NQ], sl[NQ], cm[NQ], cl[NQ];
  __shared__ float lanes[NQ][17];
  if (blockIdx.z >= *p.rows) return;
  int t = threadIdx.x, warp = t >> 5, lane = t & 31;
  int row0 = p.tiles[2 * blockIdx.z], rows = p.tiles[2 * blockIdx.z + 1];
  int head0 = blockIdx.x * p.per_tile, per = min(p.per_tile, p.group - head0 % p.group);
  int kv = head0 / p.group, n = rows * per, seq = p.seq[row0];
  int pos0 = p.pos[row0];
  const int* pages = p.tables.pages + (long)seq * *p.tables.stride;
  // Keys of query i: [lo(i), hi(i)).
  auto hi = [&](int i) { return pos0 + i / per + 1; };
  auto lo = [&](int i) { return p.window > 0 ? max(0, hi(i) - p.window) : 0; };
  int first = lo(0) / CHUNK, end = (hi(n - 1) + CHUNK - 1) / CHUNK;
  if (p.split) {
    first += blockIdx.y;
    if (first >= end) return;
    end = first + 1;
  }
  for (int i = t; i < kpad * NQ; i += THREADS) {
    int d = i / NQ, j = i % NQ;
    q[i] = j < n && d < p.kdim ? p.q[(long)(row0 + j / per) * p.q_stride + (head0 + j % per) * p.kdim + d] : 0;
  }
  if (t < NQ) {
    sm[t] = 0, sl[t] = 0;
    if (p.sinks && t < n) sm[t] = p.sinks[head0 + t % per], sl[t] = 1;
  }
  for (int i = t; i < NQ * p.vdim; i += THREADS) state[i] = 0;
  __syncthreads();
  for (int c = first; c < end; c++) {
    int base = c * CHUNK;
    int from = max(lo(0), base) - base, to = min(hi(n - 1), base + CHUNK) - base;  // keys that some query reads
    // Scores: a thread has up to 4 keys, 128 apart.
    {
      float acc[4][NQ], total[4][NQ];
      const char* key[4];
      bool have[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int k = t + j * THREADS;
        have[j] = k >= (from & ~31) && k < to;
        key[j] = have[j] ? p.base + p.page_bytes * pages[(base + k) / PAGE] + kv * p.head_bytes + k % PAGE * 16 : p.base;
#pragma unroll
        for (int i = 0; i < NQ; i++) acc[j][i] = 0, total[j][i] = 0;
      }
      for (int d0 = 0; d0 < p.kdim; d0 += N) {
        if (d0 > 0 && d0 % 512 == 0)
#pragma unroll
          for (int j = 0; j < 4; j++)
#pragma unroll
            for (int i = 0; i < NQ; i++) total[j][i] = total[j][i] + acc[j][i], acc[j][i] = 0;
        uint4 raw[4];
#pragma unroll
        for (int j = 0; j < 4; j++) raw[j] = have[j] ? *(const uint4*)(key[j] + d0 / N * PAGE * 16) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int e = 0; e < N; e++) {
          if (d0 + e >= p.kdim) break;
          float x[4];
#pragma unroll
          for (int j = 0; j < 4; j++) {
            const u32* w = (const u32*)&raw[j];
            x[j] = N == 4 ? bits(w[e & 3]) : e & 1 ? high_half(w[e >> 1 & 3]) : low_half(w[e >> 1 & 3]);
          }
#pragma unroll
          for (int i = 0; i < NQ; i++) {
            float qv = q[(d0 + e) * NQ + i];
#pragma unroll
            for (int j = 0; j < 4; j++) acc[j][i] = fma(x[j], qv, acc[j][i]);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < NQ; i++) {
          int k = t + j * THREADS;
          float s = (p.kdim > 512 ? total[j][i] + acc[j][i] : acc[j][i]) * p.scale;
          if (p.cap > 0) s = p.cap * tanhf_(s / p.cap);
          if (k < CHUNK) scores[k * NQ + i] = s;
        }
    }
    __syncthreads();
    // Weights: a warp takes a query at a time.
    for (int i = warp; i < NQ; i += THREADS / 32) {
      int a = max(lo(i), base) - base, b = min(hi(i), base + CHUNK) - base;
      if (i >= n || a >= b) {
        if (lane == 0) cm[i] = bits(0xff800000), cl[i] = 0;
        for (int k = from + lane; k < to; k += 32) scores[k * NQ + i] = 0;
        if (lane < 16) lanes[i][lane] = 0;
        continue;
      }
      float m = bits(0xff800000);
      bool nan = false;
      for (int k = a + lane; k < b; k += 32) {
        float s = scores[k * NQ + i];
        nan = nan || s != s;
        m = maxf(m, s);
      }
      for (int o = 16; o; o >>= 1) m = maxf(m, __shfl_xor_sync(~0u, m, o));
      if (__any_sync(~0u, nan)) m = bits(0x7fc00000);
      for (int k = from + lane; k < to; k += 32) scores[k * NQ + i] = k >= a && k < b ? expf_(scores[k * NQ + i] - m) : 0;
      __syncwarp();
      float l = 0;
      if (lane < 16)
        for (int k = (from & ~15) + lane; k < to; k += 16)
          if (k >= from) l = l + scores[k * NQ + i];
      l += __shfl_down_sync(~0u, l, 8);
      l += __shfl_down_sync(~0u, l, 4);
      l += __shfl_down_sync(~0u, l, 2);
      l += __shfl_down_sync(~0u, l, 1);
      if (lane == 0) cm[i] = m, cl[i] = l;
    }
    __syncthreads();
    // Weighted values: a thread has a dimension of all queries, and the keys in order.
    for (int d = t; d < p.vdim; d += THREADS) {
      float o[NQ];
#pragma unroll
      for (int i = 0; i < NQ; i++) o[i] = 0;
      for (int k0 = from & ~31; k0 < to; k0 += PAGE) {
        const char* page = p.base + p.page_bytes * pages[(base + k0) / PAGE] + kv * p.head_bytes;
        const T* v = p.v_in_k ? (const T*)page + d / N * PAGE * N + d % N : (const T*)(page + p.v_off) + d;
        int step = p.v_in_k ? N : p.vdim;
        int a = max(from, k0), b = min(to, k0 + PAGE);
#pragma unroll 8
        for (int k = a; k < b; k++) {
          float x = wide(v[(k - k0) * step]);
#pragma unroll
          for (int i = 0; i < NQ; i++) o[i] = fma(scores[k * NQ + i], x, o[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < NQ; i++) {
        if (i >= n || cl[i] == 0) continue;
        if (p.split) {
          float* part = p.parts + (((long)(row0 + i / per) * p.heads + head0 + i % per) * p.chunks + blockIdx.y) * (p.vdim + 2);
          part[2 + d] = o[i];
          if (d == 0) part[0] = cm[i], part[1] = cl[i];
        } else if (sl[i] == 0) {
          state[i * p.vdim + d] = o[i];
        } else {
          float top = maxf(sm[i], cm[i]);
          float a = expf_(sm[i] - top), b = expf_(cm[i] - top);
          state[i * p.vdim + d] = fma(o[i], b, state[i * p.vdim + d] * a);
        }
      }
      if (p.split)  // chunks that a query does not read
#pragma unroll
        for (int i = 0; i < NQ; i++)
          if (i < n && cl[i] == 0 && d == 0)
            p.parts[(((long)(row0 + i / per) * p.heads + head0 + i % per) * p.chunks + blockIdx.y) * (p.vdim + 2) + 1] = 0;
    }
    __syncthreads();
    if (!p.split && t < n && cl[t] != 0) {
      if (sl[t] == 0) {
        sm[t] = cm[t], sl[t] = cl[t];
      } else {
        float top = maxf(sm[t], cm[t]);
        float a = expf_(sm[t] - top), b = expf_(cm[t] - top);
        sl[t] = fma(cl[t], b, sl[t] * a);
        sm[t] = top;
      }
    }
    __syncthreads();
  }
  if (p.split) return;
  for (int i = 0; i < n; i++) {
    float f = 1.0f / sl[i];
    for (int d = t; d < p.vdim; d += THREADS)
      p.out[(long)(row0 + i / per) * p.out_stride + (head0 + i % per) * p.vdim + d] = state[i * p.vdim + d] * f;
  }
}
KERNEL attend_f16_1(AttendArgs p) { attend<u16, 1>(p); }
KERNEL attend_f16_8(AttendArgs p) { attend<u16, 8>(p); }
KERNEL attend_f32_1(AttendArgs p) { attend<float, 1>(p); }
KERNEL attend_f32_8(AttendArgs p) { attend<float, 8>(p); }

// Merges the chunks' results of one row (blockIdx.y) and head (blockIdx.x), in order. p.rows is the number of rows.
KERNEL attend_merge(AttendArgs p) {
  if (blockIdx.y >= *p.rows) return;
  int row = blockIdx.y, head = blockIdx.x, hi = p.pos[row] + 1;
  int lo = p.window > 0 ? max(0, hi - p.window) : 0;
  // Parts count from the first chunk of the tile that the row was in, which may be one before its own.
  int tile0 = p.tiles[row];
  int thi = p.pos[tile0] + 1, tlo = p.window > 0 ? max(0, thi - p.window) : 0;
  int first = lo / CHUNK - tlo / CHUNK, end = (hi + CHUNK - 1) / CHUNK - tlo / CHUNK;
  const float* part = p.parts + ((long)row * p.heads + head) * p.chunks * (p.vdim + 2);
  for (int d = threadIdx.x; d < p.vdim; d += blockDim.x) {
    float m = 0, l = 0, o = 0;
    if (p.sinks) m = p.sinks[head], l = 1;
    for (int c = first; c < end; c++) {
      const float* x = part + (long)c * (p.vdim + 2);
      float cm = x[0], cl = x[1];
      if (cl == 0) continue;
      float co = x[2 + d];
      if (l == 0) {
        m = cm, l = cl, o = co;
        continue;
      }
      float top = maxf(m, cm);
      float a = expf_(m - top), b = expf_(cm - top);
      l = fma(cl, b, l * a);
      o = fma(co, b, o * a);
      m = top;
    }
    p.out[(long)row * p.out_stride + head * p.vdim + d] = o * (1.0f / l);
  }
}
