// The normals of core/normals.py for a C++ compiler: each number rounded as there, so the same bits.
// (-ffp-contract=off keeps products and sums apart.) Small loops over a block that stays in the
// first cache, each of a form that compilers turn into vector instructions. Below: rows of such
// numbers shown to neurons as soon as they are drawn, before they leave the cache.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "products.h"

namespace {

const int BLOCK = 512;

float to_float(int32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

int32_t to_bits(float value) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

void words(uint64_t next, uint64_t stride, int count, uint32_t *__restrict high,
           uint32_t *__restrict low) {
    for (int i = 0; i < count; i++, next += stride) {
        uint64_t z = next;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        high[i] = uint32_t(z >> 32);
        low[i] = uint32_t(z);
    }
}

void points(const uint32_t *__restrict high, const uint32_t *__restrict low, int count, float scale,
            const float *one_offset, const float *two_offset, float *__restrict one,
            float *__restrict two) {
    const double log_2 = 0.6931471805599453, pi = 3.141592653589793, step = pi / 2 / (1 << 24);
    for (int i = 0; i < count; i++) {
        int32_t bits = to_bits(float(high[i]) + 0.5f) - 0x3F3504F3;
        float exponent = float(bits >> 23);
        float mantissa = to_float((bits & 0x7FFFFF) + 0x3F3504F3);
        float ratio = (mantissa - 1.0f) / (mantissa + 1.0f), square = ratio * ratio;
        float series = square * float(2 / 9.0) + float(2 / 7.0);
        series = square * (square * series + float(2 / 5.0)) + float(2 / 3.0);
        series = square * series + 2.0f;
        float twice = 2.0f * (float(32 * log_2) - (exponent * float(log_2) + ratio * series));
        twice = twice < 1e-30f ? 1e-30f : twice;
        float radius = twice * (1.0f / std::sqrt(twice)) * scale;
        float angle = float(int32_t(low[i] >> 8)) * float(step) - float(pi / 4 - step / 2);
        float a2 = angle * angle;
        float sine = a2 * float(1 / 362880.0) + float(-1 / 5040.0);
        sine = a2 * (a2 * sine + float(1 / 120.0)) + float(-1 / 6.0);
        sine = angle * (a2 * sine + 1.0f);
        float cosine = a2 * float(1 / 40320.0) + float(-1 / 720.0);
        cosine = a2 * (a2 * (a2 * cosine + float(1 / 24.0)) + -0.5f) + 1.0f;
        int32_t s = to_bits(sine), c = to_bits(cosine), flags = int32_t(low[i]);
        int32_t swap = (s ^ c) & -(flags & 1);
        int32_t first = to_bits(to_float(c ^ swap) * radius);
        int32_t second = to_bits(to_float(s ^ swap) * radius);
        one[i] = to_float(first ^ int32_t(uint32_t(flags & 2) << 30)) + one_offset[i];
        two[i] = to_float(second ^ int32_t(uint32_t(flags & 4) << 29)) + two_offset[i];
    }
}

// Both views of a row: of each word two numbers.
void draw_row(uint64_t start, uint64_t stride, int64_t width, float scale, const float *one_offset,
              const float *two_offset, float *one, float *two) {
    uint32_t high[BLOCK], low[BLOCK];
    for (int64_t at = 0; at < width; at += BLOCK) {
        const int some = int(std::min<int64_t>(width - at, BLOCK));
        words(start + uint64_t(at) * stride, stride, some, high, low);
        points(high, low, some, scale, one_offset + at, two_offset + at, one + at, two + at);
    }
}

template <int R>
void show_all(const float *const *rows, int64_t width, const float *columns, int64_t neurons,
              float *const *out) {
    int64_t at = 0;
    for (; at + 24 <= neurons; at += 24) inner_products<Eight, R, 3>(rows, width, columns, neurons, out, at);
    if (at + 16 <= neurons) inner_products<Eight, R, 2>(rows, width, columns, neurons, out, at), at += 16;
    if (at + 8 <= neurons) inner_products<Eight, R, 1>(rows, width, columns, neurons, out, at);
}

float inner_product(const float *a, const float *b, int64_t width) {
    Eight sums[2] = {};
    int64_t k = 0;
    for (; k + 16 <= width; k += 16)
        for (int v = 0; v < 2; v++)
            sums[v] = multiply_add(load<Eight>(a + k + 8 * v), load<Eight>(b + k + 8 * v), sums[v]);
    sums[0] += sums[1];
    float sum = 0.0f;
    for (int lane = 0; lane < 8; lane++) sum += sums[0][lane];
    for (; k < width; k++) sum += a[k] * b[k];
    return sum;
}

}  // namespace

// out: (run, 2, outer, inner, width), contiguous; offset: the same shape, read by its four strides,
// the last axis in a row; null for none.
extern "C" void rarefy_normals(int64_t runs, int64_t outer, int64_t inner, int64_t width,
                               const int64_t *start, const int64_t *stride, const float *scale,
                               const float *offset, const int64_t *strides, float *out) {
    const std::vector<float> nothing(width, -0.0f);  // x + -0 is x, also where x is 0
    const int64_t count = outer * inner * width;
    for (int64_t run = 0; run < runs; run++)
        for (int64_t row = 0; row < outer * inner; row++) {
            const float *one = nothing.data(), *two = one;
            if (offset) {
                one = offset + run * strides[0] + row / inner * strides[2] + row % inner * strides[3];
                two = one + strides[1];
            }
            const uint64_t by = uint64_t(stride[run]);
            float *here = out + 2 * run * count + row * width;
            draw_row(uint64_t(start[run]) + uint64_t(row * width) * by, by, width, scale[run], one,
                     two, here, here + count);
        }
}

// The same numbers, not kept but for the first of two views: first, (run, sample, token, width).
// weights: (run, neuron, width), so many neurons that they fill whole vectors; seen: inner products
// with them, (run, 2, sample, token, neuron); products: of a sample's tokens with each other,
// (run, 2, sample, token, token).
extern "C" void rarefy_shown_normals(int64_t runs, int64_t samples, int64_t tokens, int64_t width,
                                     int64_t neurons, const int64_t *start, const int64_t *stride,
                                     const float *scale, const float *offset,
                                     const int64_t *strides, const float *weights, float *seen,
                                     float *products, float *first) {
    std::vector<float> columns(width * neurons), second(tokens * width);
    std::vector<const float *> rows(2 * tokens);
    std::vector<float *> out(2 * tokens);
    for (int64_t run = 0; run < runs; run++, weights += neurons * width) {
        for (int64_t k = 0; k < width; k++)
            for (int64_t j = 0; j < neurons; j++) columns[k * neurons + j] = weights[j * width + k];
        const uint64_t by = uint64_t(stride[run]);
        for (int64_t sample = 0; sample < samples; sample++) {
            for (int64_t token = 0; token < tokens; token++) {
                const int64_t row = sample * tokens + token;
                const float *one = offset + run * strides[0] + sample * strides[2] + token * strides[3];
                float *x = first + (run * samples * tokens + row) * width;
                float *y = second.data() + token * width;
                draw_row(uint64_t(start[run]) + uint64_t(row * width) * by, by, width, scale[run],
                         one, one + strides[1], x, y);
                rows[token] = x, rows[tokens + token] = y;
                out[token] = seen + (2 * run * samples * tokens + row) * neurons;
                out[tokens + token] = out[token] + samples * tokens * neurons;
            }
            int64_t done = 0;
            for (; done + 4 <= 2 * tokens; done += 4)
                show_all<4>(&rows[done], width, columns.data(), neurons, &out[done]);
            for (; done < 2 * tokens; done++)
                show_all<1>(&rows[done], width, columns.data(), neurons, &out[done]);
            for (int64_t view = 0; view < 2; view++) {
                float *here = products + ((2 * run + view) * samples + sample) * tokens * tokens;
                const float *const *mine = &rows[view * tokens];
                for (int64_t a = 0; a < tokens; a++)
                    for (int64_t b = 0; b <= a; b++)
                        here[a * tokens + b] = here[b * tokens + a] =
                            inner_product(mine[a], mine[b], width);
            }
        }
    }
}
