// Products with block-quantized weights on the integer tensor cores, with the bits of NUMERICS.md.
//
// mma.m16n8k32 multiplies 16 rows of weights, one block of 32, and 8 columns of activations exactly; a float32 FMA per block
// then adds dot*(dw*da) to the chain of the segment. Formats with a scale for each 16 weights use m16n8k16, twice.
//
// Weights lie in groups of 16 rows, a group in units of 256 weights a row. A unit holds planes, in the order of the A
// fragments (a lane's 16 bytes follow those of the lane before), then a word of scales for each of 8 pairs of rows (g, g+8)
// and block of 32, then minimums or the scales of scales. Package layout.go, which packs them, says the same in Go.
//
// FORMAT chooses the format. A kernel's accumulator starts at MAGIC_BITS, so that its bits read as 1.5*2^23 + dot; what a
// format subtracts from its bits is taken off there too, times the sum of the activations.
#include "common.cuh"

// Planes: bits in nibbles, pairs, single bits, or whole bytes.
#define Q4_0 2
#define Q4_1 3
#define Q5_0 6
#define Q5_1 7
#define Q8_0 8
#define Q2_K 10
#define Q3_K 11
#define Q4_K 12
#define Q5_K 13
#define Q6_K 14
#define IQ4_NL 20
#define IQ4_XS 23
#define MXFP4 39

#define NIBBLES (FORMAT == Q4_0 || FORMAT == Q4_1 || FORMAT == Q5_0 || FORMAT == Q5_1 || FORMAT == Q4_K || FORMAT == Q5_K || \
                 FORMAT == Q6_K || FORMAT == IQ4_NL || FORMAT == IQ4_XS || FORMAT == MXFP4)
#define PAIRS (FORMAT == Q2_K || FORMAT == Q3_K || FORMAT == Q6_K)
#define SINGLES (FORMAT == Q3_K || FORMAT == Q5_0 || FORMAT == Q5_1 || FORMAT == Q5_K)
#define BYTES (FORMAT == Q8_0)
#define SIXTEENS (FORMAT == Q2_K || FORMAT == Q3_K || FORMAT == Q6_K)
#define MINS (FORMAT == Q4_1 || FORMAT == Q5_1 || FORMAT == Q4_K || FORMAT == Q5_K || FORMAT == Q2_K)
#define TABLE (FORMAT == IQ4_NL || FORMAT == IQ4_XS || FORMAT == MXFP4)
#define OFFSET (FORMAT == Q4_0 ? 8 : FORMAT == Q5_0 ? 16 : FORMAT == Q3_K ? 4 : FORMAT == Q6_K ? 32 : 0)
#define MIN_WORDS (FORMAT == Q4_1 || FORMAT == Q5_1)
#define SUPER (FORMAT == Q2_K || FORMAT == Q3_K || FORMAT == Q4_K || FORMAT == Q5_K || FORMAT == Q6_K || FORMAT == IQ4_XS)
#if FORMAT == Q4_0 || FORMAT == Q5_0 || FORMAT == Q2_K || FORMAT == Q3_K || FORMAT == Q6_K
#define NEEDS_SUMS 1  // the sums of activations: where the bits of weights are lowered, or minimums are those of 16
#else
#define NEEDS_SUMS 0
#endif
#define SUPER_MIN (FORMAT == Q2_K || FORMAT == Q4_K || FORMAT == Q5_K)

#define NIBBLE_BYTES (NIBBLES ? 2048 : 0)
#define PAIR_BYTES (PAIRS ? 1024 : 0)
#define SINGLE_BYTES (SINGLES ? 512 : 0)
#define BYTE_BYTES (BYTES ? 4096 : 0)
#define PLANES (NIBBLE_BYTES + PAIR_BYTES + SINGLE_BYTES + BYTE_BYTES)
#define UNIT (PLANES + 256 + (MIN_WORDS ? 256 : 0) + (SUPER ? 32 : 0) + (SUPER_MIN ? 32 : 0))

#define SEG_UNITS 2  // of 256: a segment of 512

struct QuantArgs {
  const int* cols;     // number of columns (rows of the step)
  const int* expert;   // by tile of 8 columns; 0: one matrix
  const u8* w[4];      // matrices that share the input
  float* y[4];
  const float* bias[4];
  int rows[4];
  int groups[4];       // where each one's groups end
  int y_stride[4];
  Quantized q;
  long matrix_bytes;   // from one expert's or head's matrix to the next
  int blocks, n;       // blocks of 32 in a row, a multiple of 8; matrices
  int head_tiles, head_y;  // from one head's tiles to the next; from its values to the next's
  float* part;         // where segments' sums go, [segment][column][row of all matrices], to be added by sum_parts
  int split;           // segments of a block of threads that leaves them there; 0: none does
  int part_rows;       // rows of all matrices, those that fill up groups included
  float* sum;          // of one matrix: results are added to these values too, times sum_scale; 0: nowhere
  int sum_stride;
  float sum_scale;
};

DEV uint4 stream(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

// A lane's part of a unit.
struct Unit {
#if NIBBLES
  uint4 nibbles[4];
#endif
#if PAIRS
  uint4 pairs[2];
#endif
#if SINGLES
  uint4 singles;
#endif
#if BYTES
  uint4 bytes[8];
#endif
  uint4 scales[2];
#if MIN_WORDS
  uint4 mins[2];
#endif
#if SUPER
  u32 d;
#endif
#if SUPER_MIN
  u32 dmin;
#endif
};

// load reads a lane's part of a unit that lies at p: in shared memory, or in the device's.
template <bool SHARED> DEV void load(Unit& u, const u8* p, int lane) {
  auto get = [](const u8* q) { return SHARED ? *(const uint4*)q : stream(q); };
#if NIBBLES
#pragma unroll
  for (int i = 0; i < 4; i++) u.nibbles[i] = get(p + i * 512 + lane * 16);
#endif
#if PAIRS
#pragma unroll
  for (int i = 0; i < 2; i++) u.pairs[i] = get(p + NIBBLE_BYTES + i * 512 + lane * 16);
#endif
#if SINGLES
  u.singles = get(p + NIBBLE_BYTES + PAIR_BYTES + lane * 16);
#endif
#if BYTES
#pragma unroll
  for (int i = 0; i < 8; i++) u.bytes[i] = get(p + i * 512 + lane * 16);
#endif
  const u8* head = p + PLANES;
  int g = lane >> 2;
#pragma unroll
  for (int i = 0; i < 2; i++) u.scales[i] = get(head + g * 32 + i * 16);
#if MIN_WORDS
#pragma unroll
  for (int i = 0; i < 2; i++) u.mins[i] = get(head + 256 + g * 32 + i * 16);
#endif
#if SUPER
  u.d = ((const u32*)(head + 256))[g];
#endif
#if SUPER_MIN
  u.dmin = ((const u32*)(head + 288))[g];
#endif
}

DEV void copy16(void* to, const void* from) {
  u32 dst = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(from));
}

DEV u32 word(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

#if TABLE
// Four nibbles in the low halves of bytes become the bytes of a table of 16.
DEV u32 lookup(u32 n) {
#if FORMAT == MXFP4
  const u32 t0 = 0x03020100, t1 = 0x0c080604, t2 = 0xfdfeff00, t3 = 0xf4f8fafc;
#else
  const u32 t0 = 0xbfad9881, t1 = 0xf6eaddcf, t2 = 0x26190d01, t3 = 0x71594535;
#endif
  u32 s = n & 0x07070707;
  s = (s | s >> 4) & 0x00ff00ff;
  s = (s | s >> 8) & 0xffff;
  u32 lo = __byte_perm(t0, t1, s), hi = __byte_perm(t2, t3, s);
  u32 mask = ((n >> 3) & 0x01010101) * 255;
  return (lo & ~mask) | (hi & mask);
}
#endif

// The A fragment of block b: 4 words of 4 signed bytes.
DEV void fragment(u32 a[4], const Unit& u, int b) {
#if BYTES
  a[0] = u.bytes[b].x, a[1] = u.bytes[b].y, a[2] = u.bytes[b].z, a[3] = u.bytes[b].w;
#else
  a[0] = a[1] = a[2] = a[3] = 0;
#if NIBBLES
  u32 w0 = word(u.nibbles[b >> 1], (b & 1) * 2), w1 = word(u.nibbles[b >> 1], (b & 1) * 2 + 1);
  a[0] = w0 & 0x0f0f0f0f, a[1] = (w0 >> 4) & 0x0f0f0f0f, a[2] = w1 & 0x0f0f0f0f, a[3] = (w1 >> 4) & 0x0f0f0f0f;
#endif
#if PAIRS
  u32 p = word(u.pairs[b >> 2], b & 3);
#pragma unroll
  for (int r = 0; r < 4; r++) {
    u32 v = (p >> (2 * r)) & 0x03030303;
    a[r] |= NIBBLES ? v << 4 : v;
  }
#endif
#if SINGLES
  u32 s = word(u.singles, b >> 1);
#pragma unroll
  for (int r = 0; r < 4; r++) a[r] |= ((s >> (4 * (b & 1) + r)) & 0x01010101) << (NIBBLES ? 4 : 2);
#endif
#if TABLE
#pragma unroll
  for (int r = 0; r < 4; r++) a[r] = lookup(a[r]);
#endif
#endif
}

// Scales and minimums of block b: [half of the block][row g or g+8].
struct Scales {
  float d[1 + SIXTEENS][2];
#if MINS
  float m[1 + SIXTEENS][2];
#endif
};

DEV void scales(Scales& s, const Unit& u, int b) {
  u32 w = word(u.scales[b >> 2], b & 3);
#if FORMAT == MXFP4
  s.d[0][0] = bits(w << 16), s.d[0][1] = bits(w & 0xffff0000u);
#elif !SUPER
  s.d[0][0] = low_half(w), s.d[0][1] = high_half(w);
#if MIN_WORDS
  u32 v = word(u.mins[b >> 2], b & 3);
  s.m[0][0] = low_half(v), s.m[0][1] = high_half(v);
#endif
#else
  float d0 = low_half(u.d), d1 = high_half(u.d);
#if FORMAT == Q4_K || FORMAT == Q5_K
  float m0 = low_half(u.dmin), m1 = high_half(u.dmin);
  s.d[0][0] = d0 * (float)(w & 255), s.d[0][1] = d1 * (float)(w >> 8 & 255);
  s.m[0][0] = -(m0 * (float)(w >> 16 & 255)), s.m[0][1] = -(m1 * (float)(w >> 24));
#elif FORMAT == Q2_K
  float m0 = low_half(u.dmin), m1 = high_half(u.dmin);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    u32 x = w >> (16 * h);
    s.d[h][0] = d0 * (float)(x & 15), s.m[h][0] = -(m0 * (float)(x >> 4 & 15));
    s.d[h][1] = d1 * (float)(x >> 8 & 15), s.m[h][1] = -(m1 * (float)(x >> 12 & 15));
  }
#else
  s.d[0][0] = d0 * (float)(signed char)(w & 255), s.d[0][1] = d1 * (float)(signed char)(w >> 8 & 255);
#if SIXTEENS
  s.d[1][0] = d0 * (float)(signed char)(w >> 16 & 255), s.d[1][1] = d1 * (float)(signed char)(w >> 24);
#endif
#endif
#endif
}

DEV void mma32(int c[4], const u32 a[4], uint2 b, int i0, int i1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%10,%11};"
               : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(i0), "r"(i1));
}
DEV void mma16(int c[4], u32 a0, u32 a1, u32 b, int i0, int i1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%7,%8};"
               : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) : "r"(a0), "r"(a1), "r"(b), "r"(i0), "r"(i1));
}
DEV float dot(int c) { return __int_as_float(c) - MAGIC; }

// Adds block b to the chains: acc[0,1] are row g with the columns of the lane's pair, acc[2,3] row g+8. With ONE only the first
// column of a pair counts.
template <bool ONE> DEV void add_block(float acc[4], const u32 a[4], const Scales& s, uint2 bf, float4 meta, int4 sums) {
#if SIXTEENS
#pragma unroll
  for (int h = 0; h < 2; h++) {
    int n0 = h ? sums.z : sums.x, n1 = h ? sums.w : sums.y;
    int c[4];
    mma16(c, a[2 * h], a[2 * h + 1], h ? bf.y : bf.x, MAGIC_BITS - OFFSET * n0, MAGIC_BITS - OFFSET * n1);
    acc[0] = fma(dot(c[0]), s.d[h][0] * meta.x, acc[0]);
    if (!ONE) acc[1] = fma(dot(c[1]), s.d[h][0] * meta.y, acc[1]);
    acc[2] = fma(dot(c[2]), s.d[h][1] * meta.x, acc[2]);
    if (!ONE) acc[3] = fma(dot(c[3]), s.d[h][1] * meta.y, acc[3]);
#if MINS
    float s0 = meta.x * (float)n0, s1 = meta.y * (float)n1;
    acc[0] = fma(s.m[h][0], s0, acc[0]);
    if (!ONE) acc[1] = fma(s.m[h][0], s1, acc[1]);
    acc[2] = fma(s.m[h][1], s0, acc[2]);
    if (!ONE) acc[3] = fma(s.m[h][1], s1, acc[3]);
#endif
  }
#else
  int c[4];
  mma32(c, a, bf, OFFSET ? MAGIC_BITS - OFFSET * (sums.x + sums.z) : MAGIC_BITS, OFFSET ? MAGIC_BITS - OFFSET * (sums.y + sums.w) : MAGIC_BITS);
  acc[0] = fma(dot(c[0]), s.d[0][0] * meta.x, acc[0]);
  if (!ONE) acc[1] = fma(dot(c[1]), s.d[0][0] * meta.y, acc[1]);
  acc[2] = fma(dot(c[2]), s.d[0][1] * meta.x, acc[2]);
  if (!ONE) acc[3] = fma(dot(c[3]), s.d[0][1] * meta.y, acc[3]);
#if MINS
  acc[0] = fma(s.m[0][0], meta.z, acc[0]);
  if (!ONE) acc[1] = fma(s.m[0][0], meta.w, acc[1]);
  acc[2] = fma(s.m[0][1], meta.z, acc[2]);
  if (!ONE) acc[3] = fma(s.m[0][1], meta.w, acc[3]);
#endif
#endif
}

// Which matrix a group belongs to; g becomes its number there.
DEV int matrix_of(const QuantArgs& p, int& g) {
  int m = 0;
  while (m + 1 < p.n && g >= p.groups[m]) m++;
  if (m > 0) g -= p.groups[m - 1];
  return m;
}

// Writes a finished element, of head blockIdx.z where there are heads.
DEV void result(const QuantArgs& p, int m, int row, int col, float y) {
  if (p.bias[m]) y = y + p.bias[m][row];
  p.y[m][(long)col * p.y_stride[m] + (p.head_y ? blockIdx.z * p.head_y : 0) + row] = y;
  if (p.sum) {
    float* s = p.sum + (long)col * p.sum_stride + row;
    *s = fma(y, p.sum_scale, *s);
  }
}

// Few columns: a block of threads goes through groups of rows, gridDim.x apart; its warps take segments, whose sums meet in
// shared memory. Each warp brings its units there some ahead of their use, also those of the next group, so that memory never
// waits for arithmetic. NT is the number of tiles of columns.
#define STAGES (UNIT <= 2560 ? 4 : UNIT <= 3456 ? 3 : 2)
template <int NT, bool ONE> DEV void few(const QuantArgs& p) {
  extern __shared__ __align__(16) u8 shared[];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  int units = (p.blocks + 7) / 8, segments = (units + SEG_UNITS - 1) / SEG_UNITS;
  u8* ring = shared + warp * (STAGES * UNIT);
  float* part = (float*)(shared + warps * (STAGES * UNIT));  // [2][segment][NT][32][4]
  int tile0 = blockIdx.y * NT, last = p.groups[p.n - 1];
  long offset = 0;  // of the expert's or head's matrix

  // What is fetched next: unit `next` of segment `seg` of a group.
  int group = blockIdx.x, seg = warp, next = 0, slot = 0;
  auto fetch = [&]() {
    if (seg < segments && group < last) {
      int g = group;
      int m = matrix_of(p, g);
      const u8* from = p.w[m] + offset + ((long)g * units + seg * SEG_UNITS + next) * UNIT;
      u8* to = ring + slot * UNIT;
#pragma unroll
      for (int i = 0; i < (UNIT + 511) / 512; i++)
        if (i * 512 + lane * 16 < UNIT) copy16(to + i * 512 + lane * 16, from + i * 512 + lane * 16);
      if (++next == SEG_UNITS || seg * SEG_UNITS + next >= units) {
        next = 0;
        if ((seg += warps) >= segments) seg = warp, group += gridDim.x;
      }
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
    asm volatile("cp.async.commit_group;");
  };
  int cols = p.expert ? 0 : given(p.cols);
  if (p.expert) {
    begin();
    if (tile0 * 8 >= *p.cols) return;
    offset = p.expert[tile0] * p.matrix_bytes;
  } else {
    offset = blockIdx.z * p.matrix_bytes;
  }
#pragma unroll
  for (int i = 0; i < STAGES; i++) fetch();  // weights do not change: they are fetched before what comes before is complete
  if (!p.expert) begin();
  if (p.expert) cols = *p.cols;
  if (tile0 * 8 >= cols) return;
  long at = (long)(blockIdx.z * p.head_tiles + tile0) * p.blocks;
  // Lanes of columns that do not exist read those of column 0: loads then need no conditions, and no more of memory.
  const uint2* frag[NT];
  const float4* meta[NT];
  const int4* sums[NT];
#pragma unroll
  for (int t = 0; t < NT; t++) {
    int first = (tile0 + t) * 8;
    long tile = first < cols ? at + (long)t * p.blocks : at;
    frag[t] = p.q.frag + tile * 32 + (first + (lane >> 2) < cols ? lane : lane & 3);
    meta[t] = p.q.meta + tile * 4 + (first + (lane & 3) * 2 < cols ? lane & 3 : 0);
    sums[t] = p.q.sums + tile * 4 + (first + (lane & 3) * 2 < cols ? lane & 3 : 0);
  }
  int use = 0, buf = 0;
  for (int g0 = blockIdx.x; g0 < last; g0 += gridDim.x, buf ^= 1) {
    for (int s = warp; s < segments; s += warps) {
      float acc[NT][4];
#pragma unroll
      for (int t = 0; t < NT; t++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[t][j] = 0;
#pragma unroll
      for (int i = 0; i < SEG_UNITS; i++) {
        if (s * SEG_UNITS + i >= units) break;
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
        __syncwarp();
        Unit u;
        load<true>(u, ring + use * UNIT, lane);
        use = use + 1 == STAGES ? 0 : use + 1;
        __syncwarp();
        fetch();
        int b0 = (s * SEG_UNITS + i) * 8;
#pragma unroll
        for (int b = 0; b < 8; b++) {
          u32 a[4];
          Scales sc;
          fragment(a, u, b);
          scales(sc, u, b);
#pragma unroll
          for (int t = 0; t < NT; t++)
            add_block<ONE>(acc[t], a, sc, frag[t][(b0 + b) * 32], meta[t][(b0 + b) * 4], NEEDS_SUMS ? sums[t][(b0 + b) * 4] : make_int4(0, 0, 0, 0));
        }
      }
#pragma unroll
      for (int t = 0; t < NT; t++)
        ((float4*)part)[((buf * segments + s) * NT + t) * 32 + lane] = make_float4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]);
    }
    __syncthreads();
    int g = g0;
    int m = matrix_of(p, g);
    for (int i = threadIdx.x; i < NT * 128; i += blockDim.x) {
      int l = i >> 2 & 31, j = i & 3;
      int row = g * 16 + (l >> 2) + (j >> 1) * 8, col = (tile0 + (i >> 7)) * 8 + (l & 3) * 2 + (j & 1);
      if (row >= p.rows[m] || col >= cols) continue;
      float y = 0;
#pragma unroll 8
      for (int s = 0; s < segments; s++) y = y + part[(buf * segments + s) * NT * 128 + i];
      result(p, m, row, col, y);
    }
  }
}
KERNEL __launch_bounds__(256, 2) one_1(QuantArgs p) { few<1, true>(p); }
KERNEL __launch_bounds__(256, 2) few_1(QuantArgs p) { few<1, false>(p); }
KERNEL __launch_bounds__(256, 1) few_2(QuantArgs p) { few<2, false>(p); }
KERNEL __launch_bounds__(256, 1) few_4(QuantArgs p) { few<4, false>(p); }

// Many columns: a block of threads has WARPS*RG groups of rows and 8 tiles of columns. Activations come to shared memory half a
// unit at a time, ahead of their use, and so do weights, a unit at a time; a warp's weights are its own. With SPLIT a block of
// threads has one segment (blockIdx.z), whose sums it leaves for sum_parts.
#define WARPS 4
#define HALF 4  // blocks
struct Activations {
  uint2 frag[HALF * 8 * 32];
  float4 meta[HALF * 8 * 4];
#if NEEDS_SUMS
  int4 sums[HALF * 8 * 4];
#endif
};
template <int RG, bool SPLIT> DEV void many(const QuantArgs& p) {
  extern __shared__ __align__(16) u8 shared[];  // [2] activations, [2][WARPS*RG] units
  Activations* act = (Activations*)shared;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u8* own = shared + 2 * sizeof(Activations) + warp * (RG * UNIT);
  int tile0 = blockIdx.y * 8;
  int g = blockIdx.x * WARPS * RG, g0 = g;
  int m = matrix_of(p, g);
  g += warp * RG;
  int all = (p.rows[m] + 15) / 16;
  int units = (p.blocks + 7) / 8, halves = p.blocks / HALF, h0 = 0;
  if (SPLIT) {
    h0 = blockIdx.z * 4;
    halves = min(halves, h0 + 4);
  }
  auto weights = [&](int h) {
#pragma unroll
    for (int r = 0; r < RG; r++) {
      const u8* from = p.w[m] + ((long)min(g + r, all - 1) * units + (h >> 1)) * UNIT;
      u8* to = own + (h >> 1 & 1) * (WARPS * RG * UNIT) + r * UNIT;
#pragma unroll
      for (int i = 0; i < (UNIT + 511) / 512; i++)
        if (i * 512 + lane * 16 < UNIT) copy16(to + i * 512 + lane * 16, from + i * 512 + lane * 16);
    }
  };
  weights(h0);
  int cols = given(p.cols);
  begin();
  if (tile0 * 8 >= cols) return;
  int tiles = min(8, (cols + 7) / 8 - tile0);
  auto stage = [&](int h) {
    Activations* a = act + (h & 1);
    long from = (long)tile0 * p.blocks + h * HALF;
    for (int i = threadIdx.x; i < tiles * HALF * 16; i += WARPS * 32) {  // 16 bytes each
      int t = i / (HALF * 16), b = i / 16 % HALF, j = i % 16;
      copy16((char*)(a->frag + (b * 8 + t) * 32) + j * 16, (const char*)(p.q.frag + (from + (long)t * p.blocks + b) * 32) + j * 16);
    }
    for (int i = threadIdx.x; i < tiles * HALF * 4; i += WARPS * 32) {
      int t = i / (HALF * 4), b = i / 4 % HALF, j = i % 4;
      copy16(a->meta + (b * 8 + t) * 4 + j, p.q.meta + (from + (long)t * p.blocks + b) * 4 + j);
#if NEEDS_SUMS
      copy16(a->sums + (b * 8 + t) * 4 + j, p.q.sums + (from + (long)t * p.blocks + b) * 4 + j);
#endif
    }
    asm volatile("cp.async.commit_group;");
  };
  float total[SPLIT ? 1 : RG][8][4], acc[RG][8][4];
#pragma unroll
  for (int r = 0; r < RG; r++)
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int j = 0; j < 4; j++) total[SPLIT ? 0 : r][t][j] = 0, acc[r][t][j] = 0;
  stage(h0);
  for (int h = h0; h < halves; h++) {
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    if (h + 1 < halves) {
      if (h & 1) weights(h + 1);
      stage(h + 1);
    }
    const Activations* a = act + (h & 1);
    auto step = [&](int b, int in_unit) {
      u32 w[RG][4];
      Scales sc[RG];
#pragma unroll
      for (int r = 0; r < RG; r++) {
        Unit u;  // of it only what the block needs is read
        load<true>(u, own + (h >> 1 & 1) * (WARPS * RG * UNIT) + r * UNIT, lane);
        fragment(w[r], u, in_unit);
        scales(sc[r], u, in_unit);
      }
#pragma unroll
      for (int t = 0; t < 8; t++) {
        uint2 bf = a->frag[(b * 8 + t) * 32 + lane];
        float4 mt = a->meta[(b * 8 + t) * 4 + (lane & 3)];
#if NEEDS_SUMS
        int4 sm = a->sums[(b * 8 + t) * 4 + (lane & 3)];
#else
        int4 sm = make_int4(0, 0, 0, 0);
#endif
#pragma unroll
        for (int r = 0; r < RG; r++) add_block<false>(acc[r][t], w[r], sc[r], bf, mt, sm);
      }
    };
    if (h & 1) {
#pragma unroll
      for (int b = 0; b < HALF; b++) step(b, HALF + b);
    } else {
#pragma unroll
      for (int b = 0; b < HALF; b++) step(b, b);
    }
    if ((h & 3) == 3 || h + 1 == halves)
#pragma unroll
      for (int r = 0; r < RG; r++)
#pragma unroll
        for (int t = 0; t < 8; t++)
#pragma unroll
          for (int j = 0; j < 4; j++) {
            if (SPLIT) {
              int row = (g0 + warp * RG + r) * 16 + (lane >> 2) + (j >> 1) * 8, col = (tile0 + t) * 8 + (lane & 3) * 2 + (j & 1);
              if (col < cols) p.part[((long)(h >> 2) * cols + col) * p.part_rows + row] = acc[r][t][j];
            } else {
              total[r][t][j] = total[r][t][j] + acc[r][t][j];
            }
            acc[r][t][j] = 0;
          }
  }
  if constexpr (!SPLIT) {
#pragma unroll
    for (int r = 0; r < RG; r++)
#pragma unroll
      for (int t = 0; t < 8; t++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          int row = (g + r) * 16 + (lane >> 2) + (j >> 1) * 8, col = (tile0 + t) * 8 + (lane & 3) * 2 + (j & 1);
          if (g + r >= all || row >= p.rows[m] || col >= cols) continue;
          float y = total[r][t][j];
          result(p, m, row, col, y);
        }
  }
}
KERNEL __launch_bounds__(128) many_1(QuantArgs p) { many<1, false>(p); }
KERNEL __launch_bounds__(128) many_2(QuantArgs p) { many<2, false>(p); }
KERNEL __launch_bounds__(128) split_1(QuantArgs p) { many<1, true>(p); }

// Adds the sums of segments, in order, for a row (thread) and a column (blockIdx.y).
KERNEL sum_parts(QuantArgs p) {
  begin();
  int cols = *p.cols, col = blockIdx.y, at = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols || at >= p.part_rows) return;
  int g = at >> 4;
  int m = matrix_of(p, g), row = g * 16 + (at & 15);
  if (row >= p.rows[m]) return;
  int segments = (p.blocks + 15) / 16;
  float y = 0;
  for (int s = 0; s < segments; s++) y = y + p.part[((long)s * cols + col) * p.part_rows + at];
  result(p, m, row, col, y);
}
