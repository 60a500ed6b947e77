// The cache of keys and values, and attention over it.
//
// A layer's part of a page holds, head by head, the keys of 32 positions as [KDim/V][32][V] and their values as [32][VDim],
// where V numbers are 16 bytes and KDim is rounded up to V. So the 32 lanes of a warp read one dimension's vector of all
// keys of a page as one run of memory.
#include "common.cuh"

#define PAGE 32
#define CHUNK 512
#define THREADS 128
#define ROW (CHUNK + 4)  // of scores: queries' scores of a key do not share a bank

template <typename T> struct Vec;
template <> struct Vec<u16> { enum { N = 8 }; };
template <> struct Vec<float> { enum { N = 4 }; };
DEV float wide(u16 v) { return half_to_float(v); }
DEV float wide(float v) { return v; }
// Four numbers as they lie in memory.
template <typename T> struct Four;
template <> struct __align__(8) Four<u16> {
  u32 w[2];
  DEV float at(int e) const { return e & 1 ? high_half(w[e >> 1]) : low_half(w[e >> 1]); }
};
template <> struct __align__(16) Four<float> {
  float w[4];
  DEV float at(int e) const { return w[e]; }
};
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

template <typename T> DEV void store(const StoreArgs& p, char* page, int slot, int h, int d, float k) {
  const int N = Vec<T>::N;
  narrow((T*)(page + h * p.head_bytes) + (d / N * PAGE + slot) * N + d % N, k);
}

template <typename T> DEV void store_kv(const StoreArgs& p) {
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (row >= *p.rows) return;
  int pos = p.pos[row];
  char* page = p.base + p.page_bytes * p.tables.pages[(long)p.seq[row] * *p.tables.stride + pos / PAGE];
  int slot = pos % PAGE;
  if (i < p.heads * p.kdim) {
    store<T>(p, page, slot, i / p.kdim, i % p.kdim, p.k[(long)row * p.k_stride + i]);
  }
  if (p.v && i < p.heads * p.vdim) {
    int h = i / p.vdim, d = i % p.vdim;
    narrow((T*)(page + h * p.head_bytes + p.v_off) + slot * p.vdim + d, p.v[(long)row * p.v_stride + i]);
  }
}
KERNEL store_kv_f16(StoreArgs p) { store_kv<u16>(p); }
KERNEL store_kv_f32(StoreArgs p) { store_kv<float>(p); }

struct RopeArgs {
  const int* rows;
  const int* pos;
  float* x;
  const float* cos;  // [context][pairs]
  const float* sin;
  int stride, heads, head_dim, off, pairs, interleaved;
};

// Turns pair i of a row and returns where its two numbers lie in the row.
DEV int2 turn(const RopeArgs& p, int row, int i, float& a, float& b) {
  int j = i % p.pairs, at = i / p.pairs * p.head_dim + p.off;
  int2 where = p.interleaved ? make_int2(at + 2 * j, at + 2 * j + 1) : make_int2(at + j, at + j + p.pairs);
  float* x = p.x + (long)row * p.stride;
  long t = (long)p.pos[row] * p.pairs + j;
  float c = p.cos[t], s = p.sin[t], x0 = x[where.x], x1 = x[where.y];
  a = fma(x0, c, -(x1 * s));
  b = fma(x1, c, x0 * s);
  x[where.x] = a;
  x[where.y] = b;
  return where;
}

KERNEL rope(RopeArgs p) {
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.y >= *p.rows || i >= p.heads * p.pairs) return;
  float a, b;
  turn(p, blockIdx.y, i, a, b);
}

struct TurnStoreArgs {
  RopeArgs q, k;
  StoreArgs store;
};

// Queries and keys are turned, keys and values stored: each thread a pair of queries, a pair of keys, a key's number that is not
// turned, or a value.
template <typename T> DEV void rope_store(const TurnStoreArgs& p) {
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  const StoreArgs& s = p.store;
  if (row >= *s.rows) return;
  float a, b;
  int pairs = p.q.heads * p.q.pairs;
  if (i < pairs) {
    turn(p.q, row, i, a, b);
    return;
  }
  i -= pairs;
  int pos = s.pos[row], slot = pos % PAGE;
  char* page = s.base + s.page_bytes * s.tables.pages[(long)s.seq[row] * *s.tables.stride + pos / PAGE];
  pairs = p.k.heads * p.k.pairs;
  if (i < pairs) {
    int2 at = turn(p.k, row, i, a, b);
    store<T>(s, page, slot, at.x / s.kdim, at.x % s.kdim, a);
    store<T>(s, page, slot, at.y / s.kdim, at.y % s.kdim, b);
    return;
  }
  i -= pairs;
  int rest = s.kdim - 2 * p.k.pairs;
  if (i < s.heads * rest) {
    int h = i / rest, d = i % rest;
    if (d >= p.k.off) d += 2 * p.k.pairs;
    store<T>(s, page, slot, h, d, s.k[(long)row * s.k_stride + h * s.kdim + d]);
    return;
  }
  i -= s.heads * rest;
  if (s.v && i < s.heads * s.vdim)
    narrow((T*)(page + i / s.vdim * s.head_bytes + s.v_off) + slot * s.vdim + i % s.vdim, s.v[(long)row * s.v_stride + i]);
}
KERNEL rope_store_f16(TurnStoreArgs p) { rope_store<u16>(p); }
KERNEL rope_store_f32(TurnStoreArgs p) { rope_store<float>(p); }

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
  Quantized quantized;  // where the result goes in quantized form too; frag 0: nowhere
  long page_bytes;
  int q_stride, out_stride;
  int heads, group;  // query heads; those that share a key head
  int per_tile;      // heads of one block of threads
  int kdim, vdim, head_bytes, v_off, v_in_k;
  int window, split;  // split: a block of threads takes one chunk and leaves its results in parts
  int chunks;         // of parts
  int ring;           // pages of values in shared memory: 1 to 4
  float scale, cap;
};

// With quantized results vdim is a multiple of 32, so that a warp has a block of 32.
DEV void finish(const AttendArgs& p, int row, int head, int d, float y) {
  p.out[(long)row * p.out_stride + head * p.vdim + d] = y;
  if (p.quantized.frag) quantize_block(p.quantized, y, row, (head * p.vdim + d) >> 5, p.heads * p.vdim >> 5, d & 31, true);
}

// A block of threads computes NQ query rows of one key head: those of `per_tile` heads for the rows of a tile. Query i is
// head i%per_tile of row i/per_tile.
template <typename T, int NQ> DEV void attend(const AttendArgs& p) {
  extern __shared__ float mem[];
  const int N = Vec<T>::N;
  float* scores = mem;                   // [NQ][ROW]
  float* q = scores + ROW * NQ;        // [kdim rounded up][NQ]
  int kpad = (p.kdim + N - 1) / N * N;
  float* state = q + kpad * NQ;          // [NQ][vdim], merged so far
  // Values come to shared memory a page at a time, some pages ahead of their use, while scores are computed too.
  char* ring = (char*)(state + (NQ * p.vdim + 3 & ~3));
  int page_values = p.v_in_k ? (p.vdim + N - 1) / N * PAGE * 16 : (PAGE * p.vdim * (int)sizeof(T) + 15) & ~15;
  __shared__ float sm[NQ], sl[NQ], cm[NQ], cl[NQ];
  int t = threadIdx.x, warp = t >> 5, lane = t & 31;
  if (blockIdx.z >= given(p.rows)) {
    begin();
    return;
  }
  int row0 = given(p.tiles + 2 * blockIdx.z), rows = given(p.tiles + 2 * blockIdx.z + 1);
  int head0 = blockIdx.x * p.per_tile, per = min(p.per_tile, p.group - head0 % p.group);
  int kv = head0 / p.group, n = rows * per, seq = given(p.seq + row0);
  int pos0 = given(p.pos + row0);
  const int* pages = p.tables.pages + (long)seq * given(p.tables.stride);
  begin();
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
  if (!p.split)
    for (int i = t; i < NQ * p.vdim; i += THREADS) state[i] = 0;
  __syncthreads();
  for (int c = first; c < end; c++) {
    int base = c * CHUNK;
    int from = max(lo(0), base) - base, to = min(hi(n - 1), base + CHUNK) - base;  // keys that some query reads
    int page0 = from / PAGE, page1 = (to + PAGE - 1) / PAGE;
    auto bring = [&](int pg) {
      if (pg < page1) {
        const char* v = p.base + p.page_bytes * pages[base / PAGE + pg] + kv * p.head_bytes + (p.v_in_k ? 0 : p.v_off);
        char* to = ring + pg % p.ring * page_values;
        for (int i = t * 16; i < page_values; i += THREADS * 16) {
          u32 dst = (u32)__cvta_generic_to_shared(to + i);
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(v + i));
        }
      }
      asm volatile("cp.async.commit_group;");
    };
    for (int i = 0; i < p.ring; i++) bring(page0 + i);
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
      // Vectors of keys are loaded DEEP at a time, ahead of their use; a thread has KEYS keys in work.
      const int KEYS = 4, DEEP = NQ == 1 ? 4 : NQ == 4 ? 2 : 1;
      uint4 raw[DEEP][KEYS];
      auto fetch = [&](int d0) {
#pragma unroll
        for (int v = 0; v < DEEP; v++)
#pragma unroll
          for (int j = 0; j < KEYS; j++)
            raw[v][j] = have[j] && d0 + v * N < p.kdim ? *(const uint4*)(key[j] + (d0 / N + v) * PAGE * 16) : make_uint4(0, 0, 0, 0);
      };
      fetch(0);
      for (int d0 = 0; d0 < p.kdim; d0 += DEEP * N) {
        uint4 now[DEEP][KEYS];
#pragma unroll
        for (int v = 0; v < DEEP; v++)
#pragma unroll
          for (int j = 0; j < KEYS; j++) now[v][j] = raw[v][j];
        if (d0 + DEEP * N < p.kdim) fetch(d0 + DEEP * N);
#pragma unroll
        for (int v = 0; v < DEEP; v++) {
          int d1 = d0 + v * N;
          if (d1 > 0 && d1 % 512 == 0)
#pragma unroll
            for (int j = 0; j < KEYS; j++)
#pragma unroll
              for (int i = 0; i < NQ; i++) total[j][i] = total[j][i] + acc[j][i], acc[j][i] = 0;
#pragma unroll
          for (int e = 0; e < N; e++) {
            if (d1 + e >= p.kdim) break;
            float x[KEYS];
#pragma unroll
            for (int j = 0; j < KEYS; j++) {
              const u32* w = (const u32*)&now[v][j];
              x[j] = N == 4 ? bits(w[e & 3]) : e & 1 ? high_half(w[e >> 1 & 3]) : low_half(w[e >> 1 & 3]);
            }
#pragma unroll
            for (int i = 0; i < NQ; i++) {
              float qv = q[(d1 + e) * NQ + i];
#pragma unroll
              for (int j = 0; j < KEYS; j++) acc[j][i] = fma(x[j], qv, acc[j][i]);
            }
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
          if (k < CHUNK) scores[i * ROW + k] = s;
        }
    }
    __syncthreads();
    // Weights: a warp takes a query at a time.
    for (int i = warp; i < NQ; i += THREADS / 32) {
      int a = max(lo(i), base) - base, b = min(hi(i), base + CHUNK) - base;
      if (i >= n || a >= b) {
        if (lane == 0) cm[i] = bits(0xff800000), cl[i] = 0;
        for (int k = from + lane; k < to; k += 32) scores[i * ROW + k] = 0;
        continue;
      }
      float m = bits(0xff800000);
      bool nan = false;
      for (int k = a + lane; k < b; k += 32) {
        float s = scores[i * ROW + k];
        nan = nan || s != s;
        m = maxf(m, s);
      }
      for (int o = 16; o; o >>= 1) m = maxf(m, __shfl_xor_sync(~0u, m, o));
      if (__any_sync(~0u, nan)) m = bits(0x7fc00000);
      int a16 = from & ~15, b16 = to + 15 & ~15;  // zeros up to whole rounds of the lanes
      for (int k = a16 + lane; k < b16; k += 32) scores[i * ROW + k] = k >= a && k < b ? expf_(scores[i * ROW + k] - m) : 0;
      __syncwarp();
      float l = 0;
      if (lane < 16)
#pragma unroll 8
        for (int k = a16 + lane; k < b16; k += 16) l = l + scores[i * ROW + k];
      l += __shfl_down_sync(~0u, l, 8);
      l += __shfl_down_sync(~0u, l, 4);
      l += __shfl_down_sync(~0u, l, 2);
      l += __shfl_down_sync(~0u, l, 1);
      if (lane == 0) cm[i] = m, cl[i] = l;
    }
    __syncthreads();
    // Weighted values: a warp has QW queries, a thread 4 dimensions of them (more, one after the other, of wide heads), and the
    // keys in order.
    const int QW = NQ < 4 ? 1 : NQ / 4, WIDE = 4;  // up to 512 dimensions
    float o[WIDE][QW][4];
#pragma unroll
    for (int x = 0; x < WIDE; x++)
#pragma unroll
      for (int i = 0; i < QW; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[x][i][e] = 0;
    const float* weights = scores + warp * QW * ROW;
    int step = p.v_in_k ? N : p.vdim;
    bool active = warp * QW < n, vectors = p.v_in_k || (p.vdim & 3) == 0;
    for (int pg = page0; pg < page1; pg++) {
      if (p.ring >= 4) asm volatile("cp.async.wait_group 3;");
      else if (p.ring == 3) asm volatile("cp.async.wait_group 2;");
      else if (p.ring == 2) asm volatile("cp.async.wait_group 1;");
      else asm volatile("cp.async.wait_group 0;");
      __syncthreads();
      int a = max(from, pg * PAGE), b = min(to, pg * PAGE + PAGE);
#pragma unroll
      for (int x = 0; x < WIDE; x++) {
        int d = x * 128 + lane * 4;
        if (!active || d >= p.vdim) break;
        const T* v = (const T*)(ring + pg % p.ring * page_values) + (p.v_in_k ? d / N * PAGE * N + d % N : d) - pg * PAGE * step;
        if (vectors && a == pg * PAGE && b == a + PAGE) {
#pragma unroll
          for (int k = 0; k < PAGE; k += 4) {
            float4 w[QW];
#pragma unroll
            for (int i = 0; i < QW; i++) w[i] = *(const float4*)(weights + i * ROW + a + k);
#pragma unroll
            for (int l = 0; l < 4; l++) {
              Four<T> f = *(const Four<T>*)(v + (a + k + l) * step);
#pragma unroll
              for (int e = 0; e < 4; e++)
#pragma unroll
                for (int i = 0; i < QW; i++)
                  o[x][i][e] = fma(l == 0 ? w[i].x : l == 1 ? w[i].y : l == 2 ? w[i].z : w[i].w, f.at(e), o[x][i][e]);
            }
          }
        } else {
          for (int k = a; k < b; k++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              float f = d + e < p.vdim ? wide(v[k * step + e]) : 0;
#pragma unroll
              for (int i = 0; i < QW; i++) o[x][i][e] = fma(weights[i * ROW + k], f, o[x][i][e]);
            }
        }
      }
      __syncthreads();
      bring(pg + p.ring);
    }
    asm volatile("cp.async.wait_group 0;");
#pragma unroll
    for (int x = 0; x < WIDE; x++) {
      int d = x * 128 + lane * 4;
      if (!active || d >= p.vdim) break;
#pragma unroll
      for (int j = 0; j < QW; j++) {
        int i = warp * QW + j;
        if (i >= n) continue;
        if (p.split) {
          float* part = p.parts + (((long)(row0 + i / per) * p.heads + head0 + i % per) * p.chunks + blockIdx.y) * (p.vdim + 2);
          if (d == 0) part[0] = cm[i], part[1] = cl[i];  // cl 0: the query reads no key of the chunk
          for (int e = 0; e < 4 && d + e < p.vdim; e++) part[2 + d + e] = o[x][j][e];
          continue;
        }
        if (cl[i] == 0) continue;
        float* st = state + i * p.vdim + d;
        float top = maxf(sm[i], cm[i]);
        float a = expf_(sm[i] - top), b = expf_(cm[i] - top);
        for (int e = 0; e < 4 && d + e < p.vdim; e++) st[e] = sl[i] == 0 ? o[x][j][e] : fma(o[x][j][e], b, st[e] * a);
      }
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
    for (int d = t; d < p.vdim; d += THREADS) finish(p, row0 + i / per, head0 + i % per, d, state[i * p.vdim + d] * f);
  }
}
KERNEL attend_f16_1(AttendArgs p) { attend<u16, 1>(p); }
KERNEL attend_f16_4(AttendArgs p) { attend<u16, 4>(p); }
KERNEL attend_f16_8(AttendArgs p) { attend<u16, 8>(p); }
KERNEL attend_f32_1(AttendArgs p) { attend<float, 1>(p); }
KERNEL attend_f32_4(AttendArgs p) { attend<float, 4>(p); }
KERNEL attend_f32_8(AttendArgs p) { attend<float, 8>(p); }

// Merges the chunks' results of one row (blockIdx.y) and head (blockIdx.x), in order. p.rows is the number of rows.
KERNEL attend_merge(AttendArgs p) {
  begin();
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
    for (int c0 = first; c0 < end; c0 += 8) {
      float pm[8], pl[8], po[8];  // read before they are needed
#pragma unroll
      for (int c = 0; c < 8; c++) {
        const float* x = part + (long)min(c0 + c, end - 1) * (p.vdim + 2);
        pm[c] = x[0], pl[c] = c0 + c < end ? x[1] : 0, po[c] = x[2 + d];
      }
#pragma unroll
      for (int c = 0; c < 8; c++) {
        if (pl[c] == 0) continue;
        if (l == 0) {
          m = pm[c], l = pl[c], o = po[c];
          continue;
        }
        float top = maxf(m, pm[c]);
        float a = expf_(m - top), b = expf_(pm[c] - top);
        l = fma(pl[c], b, l * a);
        o = fma(po[c], b, o * a);
        m = top;
      }
    }
    finish(p, row, head, d, o * (1.0f / l));
  }
}
