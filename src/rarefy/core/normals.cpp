// The normals of core/normals.py for a C++ compiler: each number rounded as there, so the same bits.
// (-ffp-contract=off keeps products and sums apart.) Small loops over a block that stays in the
// first cache, each of a form that compilers turn into vector instructions.

#include <cmath>
#include <cstdint>
#include <cstring>

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

}  // namespace

// out: (run, 2, outer, inner, width), contiguous; offset: the same shape, read by its four strides,
// the last axis in a row; null for none.
extern "C" void rarefy_normals(int64_t runs, int64_t outer, int64_t inner, int64_t width,
                               const int64_t *start, const int64_t *stride, const float *scale,
                               const float *offset, const int64_t *strides, float *out) {
    uint32_t high[BLOCK], low[BLOCK];
    float nothing[BLOCK];
    for (float &value : nothing) value = -0.0f;  // x + -0 is x, also where x is 0
    const int64_t count = outer * inner * width;
    for (int64_t run = 0; run < runs; run++)
        for (int64_t row = 0; row < outer * inner; row++)
            for (int64_t column = 0; column < width; column += BLOCK) {
                const int some = int(width - column < BLOCK ? width - column : BLOCK);
                const int64_t at = row * width + column;
                const float *one = nothing, *two = nothing;
                if (offset) {
                    one = offset + run * strides[0] + row / inner * strides[2] +
                          row % inner * strides[3] + column;
                    two = one + strides[1];
                }
                words(uint64_t(start[run]) + uint64_t(at) * uint64_t(stride[run]),
                      uint64_t(stride[run]), some, high, low);
                float *here = out + 2 * run * count + at;
                points(high, low, some, scale[run], one, two, here, here + count);
            }
}
