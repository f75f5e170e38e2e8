// SPDX-License-Identifier: Apache-2.0
// The inner loops of linear layers as a table, one table a tier; all tables give the same bits.
// Included by files compiled for wide instruction sets: nothing but plain C types here, so that no
// inline function of a shared header can end up compiled for instructions a machine lacks.
//
// Weights are stored in panels: 128 inputs (one block) by 16 or 32 outputs. A panel is decoded into
// fp32 (one tier keeps fp16) once and then used for every row. The values of a decoded EXL3 panel,
// and the sums made from it, stand in the order that the tier's decoder finds cheapest;
// rotate_output puts them right.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_SIMD_LINEAR_LOOPS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_SIMD_LINEAR_LOOPS_H_

#include <stddef.h>
#include <stdint.h>

namespace hallmark {

// panel <- one packed panel, at most 128 * columns floats. May read 64 bytes past its end.
using DecodePanelLoop = void (*)(const uint8_t* packed, float* panel);

// sum[row, c] += the product of one 128-block for each of `rows` rows and each panel column.
// panel as its decoder left it, x [rows, 128], sum [rows] rows that lie 128 floats apart.
using AddPanelLoop = void (*)(const float* panel, const float* x, int64_t rows, float* sum);

enum class PlainType { kBf16 = 0, kF16 = 1, kF32 = 2 };

struct LinearLoops {
  int64_t panel_columns;  // 16 or 32

  // How 8 * panel_columns / 16 tiles (input tile major) become one packed panel of 128 *
  // panel_columns * k2 / 16 bytes. tiles[i] points to 8 * k2 words.
  void (*pack_panel)(const uint16_t* const* tiles, int k2, uint8_t* packed);
  // The decoder of an existing codebook and width.
  DecodePanelLoop (*exl3_decoder)(int codebook, int k2);
  // packed [128, columns] of a plain type, natural column order.
  DecodePanelLoop (*plain_decoder)(PlainType type);

  AddPanelLoop add_exact;    // every product is exact in fp32 (two fp16 values)
  AddPanelLoop add_rounded;  // products are rounded before they are added

  // xh [128] <- fp16((x * suh) H), widened again. False if a value is not finite in fp16.
  bool (*rotate_input)(const float* x, const float* suh, float* xh);
  // y [128] <- (sum H) * svh (+ bias unless null); sum [128] in panel column order.
  void (*rotate_output)(const float* sum, const float* svh, const float* bias, float* y);
  // values [128, columns] <- a decoded EXL3 panel in natural order.
  void (*unpack_panel)(const float* panel, float* values);
};

const LinearLoops& ScalarLinearLoops();
// x86-64 only.
const LinearLoops& Avx2LinearLoops();
const LinearLoops& Avx512LinearLoops();
const LinearLoops& Avx512Fp16LinearLoops();

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_SIMD_LINEAR_LOOPS_H_
