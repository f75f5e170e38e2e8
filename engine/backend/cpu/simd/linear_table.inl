// SPDX-License-Identifier: Apache-2.0
// Included once per wide tier, after linear_loops.inl and the tier's DecodePanel<codebook, k2>,
// DecodeBf16, DecodeF16, Natural(sum, v) and UnpackPanel: the tier's table.

static void DecodeF32(const uint8_t* packed, float* panel) {
  __builtin_memcpy(panel, packed, kBlock * kPanelColumns * sizeof(float));
}

static DecodePanelLoop PlainDecoder(PlainType type) {
  switch (type) {
    case PlainType::kBf16:
      return &DecodeBf16;
    case PlainType::kF16:
      return &DecodeF16;
    case PlainType::kF32:
      return &DecodeF32;
  }
  return nullptr;
}

template <int kCodebook>
static DecodePanelLoop WholeWidthDecoder(int k2) {
  switch (k2) {
    case 2:
      return &DecodePanel<kCodebook, 2>;
    case 4:
      return &DecodePanel<kCodebook, 4>;
    case 6:
      return &DecodePanel<kCodebook, 6>;
    case 8:
      return &DecodePanel<kCodebook, 8>;
    case 10:
      return &DecodePanel<kCodebook, 10>;
    case 12:
      return &DecodePanel<kCodebook, 12>;
    case 14:
      return &DecodePanel<kCodebook, 14>;
    case 16:
      return &DecodePanel<kCodebook, 16>;
    default:
      return nullptr;
  }
}

// Null for a pair that does not exist.
static DecodePanelLoop Exl3Decoder(int codebook, int k2) {
  if (codebook == 0) return WholeWidthDecoder<0>(k2);
  if (codebook == 1) return WholeWidthDecoder<1>(k2);
  switch (k2) {
    case 3:
      return &DecodePanel<2, 3>;
    case 5:
      return &DecodePanel<2, 5>;
    case 7:
      return &DecodePanel<2, 7>;
    default:
      return WholeWidthDecoder<2>(k2);
  }
}

static void RotateOutput(const float* sum, const float* svh, const float* bias, float* y) {
  Vec v[kBlock / kLanes];
  Natural(sum, v);
  RotateNatural(v, svh, bias, y);
}

constexpr LinearLoops MakeLoops(void (*pack)(const uint16_t* const*, int, uint8_t*),
                                AddPanelLoop add_exact) {
  return {kPanelColumns,    pack,         &Exl3Decoder,  &PlainDecoder, add_exact,
          &AddPanel<false>, &RotateInput, &RotateOutput, &UnpackPanel};
}
