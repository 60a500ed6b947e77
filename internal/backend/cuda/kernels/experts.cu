// Routing, and what mixtures of experts need around their matrix products.
#include "common.cuh"

struct RouteArgs {
  const int* rows;
  const float* logits;
  const float* bias;
  int* ids;        // [row][top_k]
  float* weights;
  int stride, experts, top_k, kind;
  int groups, group_top_k, group_sum2, norm;
  float norm_eps, scale;
};

DEV void softmax(float* x, int n, int lane) {
  float m = bits(0xff800000);
  for (int i = lane; i < n; i += 32) m = maxf(m, x[i]);
  for (int o = 16; o; o >>= 1) m = maxf(m, __shfl_xor_sync(~0u, m, o));
  for (int i = lane; i < n; i += 32) x[i] = expf_(x[i] - m);
  __syncwarp();
  float sum = lane_sum<false>(x, n, lane);
  for (int i = lane; i < n; i += 32) x[i] = x[i] / sum;
  __syncwarp();
}

// A warp chooses the experts of a row.
KERNEL route(RouteArgs p) {
  begin();
  extern __shared__ float mem[];
  int n = p.experts, lane = threadIdx.x, row = blockIdx.x;
  if (row >= *p.rows) return;
  float *score = mem, *choice = mem + n, *rating = mem + 2 * n;
  const float taken = bits(0x7fc00000), least = bits(0xff800000);
  for (int i = lane; i < n; i += 32) score[i] = p.logits[(long)row * p.stride + i];
  __syncwarp();
  if (p.kind == 0) softmax(score, n, lane);
  if (p.kind == 1)
    for (int i = lane; i < n; i += 32) score[i] = activate(6, score[i]);
  __syncwarp();
  for (int i = lane; i < n; i += 32) {
    float s = score[i];
    if (p.bias) s = s + p.bias[i];
    choice[i] = s != s ? least : s;
  }
  __syncwarp();
  if (p.groups > 1) {
    int size = n / p.groups;
    for (int g = lane; g < p.groups; g += 32) {
      float first = least, second = least;
      for (int i = 0; i < size; i++) {
        float s = choice[g * size + i];
        if (s > first) second = first, first = s;
        else if (s > second) second = s;
      }
      rating[g] = p.group_sum2 ? first + second : first;
    }
    __syncwarp();
    for (int g = lane; g < p.groups; g += 32) {
      int better = 0;
      for (int h = 0; h < p.groups; h++)
        if (rating[h] > rating[g] || (rating[h] == rating[g] && h < g)) better++;
      if (better >= p.group_top_k)
        for (int i = 0; i < size; i++) choice[g * size + i] = taken;
    }
    __syncwarp();
  }
  int* ids = p.ids + (long)row * p.top_k;
  float* chosen = rating;  // weights, in the order of choice
  for (int k = 0; k < p.top_k; k++) {
    int best = -1;
    float top = 0;
    for (int i = lane; i < n; i += 32) {
      float s = choice[i];
      if (s == s && (best < 0 || s > top)) best = i, top = s;
    }
    for (int o = 16; o; o >>= 1) {
      int b = __shfl_xor_sync(~0u, best, o);
      float s = __shfl_xor_sync(~0u, top, o);
      if (b >= 0 && (best < 0 || s > top || (s == top && b < best))) best = b, top = s;
    }
    __syncwarp();
    if (lane == 0) {
      ids[k] = max(best, 0);
      chosen[k] = best < 0 ? 0 : score[best];
      if (best >= 0) choice[best] = taken;
    }
    __syncwarp();
  }
  if (p.kind == 2) {
    softmax(chosen, p.top_k, lane);
  } else if (p.norm && lane == 0) {
    float sum = 0;
    for (int k = 0; k < p.top_k; k++) sum = sum + chosen[k];
    sum = sum + p.norm_eps;
    for (int k = 0; k < p.top_k; k++) chosen[k] = chosen[k] / sum;
  }
  __syncwarp();
  for (int k = lane; k < p.top_k; k += 32) p.weights[(long)row * p.top_k + k] = chosen[k] * p.scale;
}

// Slots, the pairs of a row and one of its experts, get columns: those of an expert fill tiles of 8.
struct SortArgs {
  const int* rows;
  const int* ids;
  int* col;     // by slot
  int* slot;    // by column, -1 where there is none
  int* expert;  // by tile
  int* tiles;   // number of tiles; then of columns
  int top_k, experts;
};

// One block of 1,024 threads; shared memory holds 2*experts+1 numbers.
KERNEL sort_slots(SortArgs p) {
  begin();
  extern __shared__ int counts[];
  int* start = counts + p.experts;  // in tiles
  int n = *p.rows * p.top_k, t = threadIdx.x;
  for (int e = t; e < p.experts; e += blockDim.x) counts[e] = 0;
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) atomicAdd(counts + p.ids[i], 1);
  __syncthreads();
  if (t < 32) {  // running sum of tiles
    int carry = 0;
    for (int e0 = 0; e0 < p.experts; e0 += 32) {
      int own = e0 + t < p.experts ? (counts[e0 + t] + 7) / 8 : 0, sum = own;
      for (int o = 1; o < 32; o <<= 1) {
        int s = __shfl_up_sync(~0u, sum, o);
        if (t >= o) sum += s;
      }
      if (e0 + t < p.experts) start[e0 + t] = carry + sum - own;
      carry += __shfl_sync(~0u, sum, 31);
    }
    if (t == 0) start[p.experts] = carry, p.tiles[0] = carry, p.tiles[1] = carry * 8;
  }
  __syncthreads();
  for (int i = t; i < start[p.experts] * 8; i += blockDim.x) p.slot[i] = -1;
  for (int e = t; e < p.experts; e += blockDim.x) {
    for (int k = start[e]; k < start[e] + (counts[e] + 7) / 8; k++) p.expert[k] = e;
    counts[e] = 0;
  }
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) {
    int e = p.ids[i], c = start[e] * 8 + atomicAdd(counts + e, 1);
    p.col[i] = c;
    p.slot[c] = i;
  }
}

struct ExpertArgs {
  const int* cols;    // number of columns
  const int* slot;    // by column
  const int* col;     // by slot
  const int* expert;  // by tile
  const int* ids;
  const float* weights;  // by slot
  const float* x;        // rows; gate
  const float* u;        // up
  float* out;
  const float* bias;     // of gate; of down
  const float* bias2;    // of up
  Quantized q;
  int x_stride, out_stride, width, top_k, kind, weigh;
  float limit, alpha;
};

// The input of a column: its row's values, times the weight where that belongs to the input.
KERNEL expert_input(ExpertArgs p) {
  begin();
  if (blockIdx.y >= *p.cols) return;
  int slot = p.slot[blockIdx.y];
  if (slot < 0) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool in = i < p.width;
  float y = in ? p.x[(long)(slot / p.top_k) * p.x_stride + i] : 0;
  if (p.weigh) y = y * p.weights[slot];
  if (p.q.frag) quantize_block(p.q, y, blockIdx.y, i >> 5, p.width >> 5, threadIdx.x & 31, in);
  else if (in) p.out[(long)blockIdx.y * p.width + i] = y;
}

// Gate and up of a column become the input of down.
KERNEL expert_gate(ExpertArgs p) {
  begin();
  if (blockIdx.y >= *p.cols || p.slot[blockIdx.y] < 0) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool in = i < p.width;
  float y = 0;
  if (in) {
    int e = p.expert[blockIdx.y >> 3];
    float g = p.x[(long)blockIdx.y * p.width + i], u = p.u[(long)blockIdx.y * p.width + i];
    if (p.bias) g = g + p.bias[(long)e * p.width + i];
    if (p.bias2) u = u + p.bias2[(long)e * p.width + i];
    y = gated(p.kind, g, u, p.limit, p.alpha);
  }
  if (p.q.frag) quantize_block(p.q, y, blockIdx.y, i >> 5, p.width >> 5, threadIdx.x & 31, in);
  else if (in) p.out[(long)blockIdx.y * p.width + i] = y;
}

// Adds a row's experts in router order. cols is the number of rows.
KERNEL expert_sum(ExpertArgs p) {
  begin();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.y >= *p.cols || i >= p.width) return;
  float sum = 0;
  for (int k = 0; k < p.top_k; k++) {
    int slot = blockIdx.y * p.top_k + k;
    float y = p.x[(long)p.col[slot] * p.width + i];
    if (p.bias) y = y + p.bias[(long)p.ids[slot] * p.width + i];
    sum = fma(y, p.weigh ? 1.0f : p.weights[slot], sum);
  }
  p.out[(long)blockIdx.y * p.out_stride + i] = sum;
}
