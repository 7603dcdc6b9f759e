/* Philox4x64-10 for C: wide products, and the first word of the blocks of many keys at one position.

   Many keys are independent chains of multiplications. Where the processor has AVX-512 (asked once, at run time),
   sixteen of them are in flight in two vectors; products are put together from 32-bit halves. All is integer
   arithmetic, so every path gives the same bits. Elsewhere a plain loop serves.
   Source of the generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */

#ifndef EMUML_PHILOX_H
#define EMUML_PHILOX_H

#include <stddef.h>
#include <stdint.h>

#define EMUML_M0 UINT64_C(0xD2E7470EE14C6C93)
#define EMUML_M1 UINT64_C(0xCA5A826395121157)
#define EMUML_W0 UINT64_C(0x9E3779B97F4A7C15)
#define EMUML_W1 UINT64_C(0xBB67AE8584CAA73B)

/* High half of a 64 x 64 bit product, from 32-bit halves: for compilers without a 128-bit integer. */
static inline uint64_t emuml_high_portable(uint64_t a, uint64_t b) {
    uint64_t a_low = a & 0xFFFFFFFFu, a_high = a >> 32, b_low = b & 0xFFFFFFFFu, b_high = b >> 32;
    uint64_t low = a_low * b_low, cross = a_high * b_low, other = a_low * b_high;
    uint64_t middle = (low >> 32) + (cross & 0xFFFFFFFFu) + other;  /* cannot overflow: < 2^64 */
    return a_high * b_high + (cross >> 32) + (middle >> 32);
}

#ifdef __SIZEOF_INT128__
static inline uint64_t emuml_high(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
#else
#define emuml_high emuml_high_portable
#endif

/* The first word of block position + 1: numpy increments the 256-bit counter before it makes a block. */
static inline uint64_t emuml_first_word(uint64_t low, uint64_t high, uint64_t position) {
    uint64_t a = position + 1, b = a == 0, c = 0, d = 0;
    int turn;
    for (turn = 0; turn < 10; turn++) {
        uint64_t first = emuml_high(EMUML_M0, a), second = emuml_high(EMUML_M1, c);
        uint64_t next_b = c * EMUML_M1, next_d = a * EMUML_M0;
        a = second ^ b ^ low;
        c = first ^ d ^ high;
        b = next_b;
        d = next_d;
        low += EMUML_W0;
        high += EMUML_W1;
    }
    return a;
}

static inline void emuml_key_words_plain(
    const uint64_t *lows, const uint64_t *highs, uint64_t position, uint64_t *out, ptrdiff_t count) {
    ptrdiff_t i;
    for (i = 0; i < count; i++) out[i] = emuml_first_word(lows[i], highs[i], position);
}

#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 9)
#define EMUML_WIDE 1
#include <immintrin.h>
#define EMUML_512 __attribute__((target("avx512f")))

static inline EMUML_512 __attribute__((always_inline)) void emuml_multiply_512(
    __m512i x, uint64_t by, __m512i *high, __m512i *low) {
    const __m512i by_low = _mm512_set1_epi64((long long)by), by_high = _mm512_set1_epi64((long long)(by >> 32));
    const __m512i half = _mm512_set1_epi64(0xFFFFFFFF);
    __m512i x_high = _mm512_srli_epi64(x, 32);
    __m512i ll = _mm512_mul_epu32(x, by_low), lh = _mm512_mul_epu32(x, by_high);
    __m512i hl = _mm512_mul_epu32(x_high, by_low), hh = _mm512_mul_epu32(x_high, by_high);
    __m512i t = _mm512_add_epi64(hl, _mm512_srli_epi64(ll, 32));
    __m512i u = _mm512_add_epi64(lh, _mm512_and_si512(t, half));
    *high = _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64(t, 32)), _mm512_srli_epi64(u, 32));
    *low = _mm512_mask_blend_epi32(0xAAAA, ll, _mm512_slli_epi64(u, 32));
}

/* The first turn multiplies the counter, which all keys share, and the last one needs one product only: the compiler
   drops the other one. */
static EMUML_512 void emuml_key_words_512(
    const uint64_t *lows, const uint64_t *highs, uint64_t position, uint64_t *out, ptrdiff_t count) {
    const uint64_t counter = position + 1;
    const __m512i weyl_low = _mm512_set1_epi64((long long)EMUML_W0), weyl_high = _mm512_set1_epi64((long long)EMUML_W1);
    const __m512i first = _mm512_set1_epi64((long long)emuml_high(EMUML_M0, counter));
    const __m512i low_product = _mm512_set1_epi64((long long)(counter * EMUML_M0));
    const __m512i carry = _mm512_set1_epi64(counter == 0);
    ptrdiff_t i;
    int turn, k;
    for (i = 0; i + 16 <= count; i += 16) {
        __m512i low[2], high[2], a[2], b[2], c[2], d[2];
        for (k = 0; k < 2; k++) {
            low[k] = _mm512_loadu_si512(lows + i + 8 * k);
            high[k] = _mm512_loadu_si512(highs + i + 8 * k);
            a[k] = _mm512_xor_si512(low[k], carry);
            b[k] = _mm512_setzero_si512();
            c[k] = _mm512_xor_si512(high[k], first);
            d[k] = low_product;
        }
#pragma GCC unroll 9
        for (turn = 1; turn < 10; turn++) {
#pragma GCC unroll 2
            for (k = 0; k < 2; k++) {
                __m512i from_a, from_c, next_b, next_d;
                emuml_multiply_512(a[k], EMUML_M0, &from_a, &next_d);
                emuml_multiply_512(c[k], EMUML_M1, &from_c, &next_b);
                low[k] = _mm512_add_epi64(low[k], weyl_low);
                high[k] = _mm512_add_epi64(high[k], weyl_high);
                a[k] = _mm512_ternarylogic_epi64(from_c, b[k], low[k], 0x96);
                c[k] = _mm512_ternarylogic_epi64(from_a, d[k], high[k], 0x96);
                b[k] = next_b;
                d[k] = next_d;
            }
        }
        for (k = 0; k < 2; k++) _mm512_storeu_si512(out + i + 8 * k, a[k]);
    }
    emuml_key_words_plain(lows + i, highs + i, position, out + i, count - i);
}

static inline int emuml_is_wide(void) { return __builtin_cpu_supports("avx512f") != 0; }
#else
#define EMUML_WIDE 0
#define emuml_key_words_512 emuml_key_words_plain
static inline int emuml_is_wide(void) { return 0; }
#endif

/* Write the first words of many keys at one position. */
static inline void emuml_key_words(
    const uint64_t *lows, const uint64_t *highs, uint64_t position, uint64_t *out, ptrdiff_t count) {
    if (EMUML_WIDE && emuml_is_wide())
        emuml_key_words_512(lows, highs, position, out, count);
    else
        emuml_key_words_plain(lows, highs, position, out, count);
}

#endif
