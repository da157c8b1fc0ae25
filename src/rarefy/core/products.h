// Inner products whose sums stay in registers.

#pragma once

#include <cstdint>
#include <cstring>

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

template <class Lanes>
inline Lanes load(const float *from) {
    Lanes found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

template <class Lanes>
inline Lanes multiply_add(const Lanes &a, const Lanes &b, const Lanes &sum) {
    return a * b + sum;
}

// (by their names in the compiler: the header with their usual names takes a second to read)
#ifdef __FMA__
inline Eight multiply_add(const Eight &a, const Eight &b, const Eight &sum) {
    return __builtin_ia32_vfmaddps256(a, b, sum);
}
#endif

#ifdef __AVX512F__
inline Sixteen multiply_add(const Sixteen &a, const Sixteen &b, const Sixteen &sum) {
    return __builtin_ia32_vfmaddps512_mask(a, b, sum, -1, 4);
}
#endif

// The inner products of R rows with V vectors of columns, (width, count), from column `at` on; added
// to what is there, if asked for. All sums stay in registers, which takes loops that are written out
// before anything else is done to them.
template <class Lanes, int R, int V, bool ADD = false>
void inner_products(const float *const *rows, int64_t width, const float *columns, int64_t count,
                    float *const *out, int64_t at) {
    const int64_t lanes = sizeof(Lanes) / sizeof(float);
    Lanes sums[R][V] = {};
    if (ADD)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
#pragma GCC unroll 8
            for (int v = 0; v < V; v++) sums[r][v] = load<Lanes>(out[r] + at + lanes * v);
    for (int64_t k = 0; k < width; k++) {
        Lanes some[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) {
            some[v] = load<Lanes>(columns + k * count + at + lanes * v);
#ifdef __FMA__
            asm("" : "+v"(some[v]));  // read once, not once per row
#endif
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
#pragma GCC unroll 8
            for (int v = 0; v < V; v++)
                sums[r][v] = multiply_add(some[v], rows[r][k] - Lanes{}, sums[r][v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
            std::memcpy(out[r] + at + lanes * v, &sums[r][v], sizeof(Lanes));
}
