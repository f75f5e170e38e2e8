// SPDX-License-Identifier: Apache-2.0
#include "engine/format/quantization_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/format/json_view.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr int64_t kPlainBits = 16;

Result<std::optional<int>> WholeBits(const JsonView& view, const char* key) {
  const auto bits = TRY(view.Int(key, INT64_MIN, INT64_MAX));
  if (!bits) return std::nullopt;
  if ((*bits < 1 || *bits > 8) && *bits != kPlainBits) {
    return Fail(Code::kOutOfRange,
                "found " + std::to_string(*bits) + ", expected 1 to 8, or 16 for not quantized",
                view.At(key));
  }
  return static_cast<int>(*bits);
}

Result<std::optional<uint32_t>> Multiplier(const JsonView& view, const char* key) {
  const auto value = TRY(view.Int(key, INT32_MIN, UINT32_MAX));
  if (!value) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// The names torch prints for the types that occur in checkpoints.
std::optional<DType> TorchDType(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, DType>, 11> kNames = {{
      {"torch.bool", DType::kBool},
      {"torch.uint8", DType::kU8},
      {"torch.int8", DType::kI8},
      {"torch.int16", DType::kI16},
      {"torch.int32", DType::kI32},
      {"torch.int64", DType::kI64},
      {"torch.float16", DType::kF16},
      {"torch.bfloat16", DType::kBF16},
      {"torch.float32", DType::kF32},
      {"torch.float64", DType::kF64},
      {"torch.float8_e4m3fn", DType::kF8E4M3},
  }};
  for (const auto& [torch, dtype] : kNames) {
    if (torch == name) return dtype;
  }
  return std::nullopt;
}

Result<StoredTensor> ParseStoredTensor(const JsonView& view, const std::string& name) {
  StoredTensor tensor{.name = name};
  const auto dtype = TRY(view.Text("dtype"));
  if (!dtype) return Fail(Code::kMalformed, "the key is missing", view.At("dtype"));
  const std::optional<DType> parsed = TorchDType(*dtype);
  if (!parsed) {
    return Fail(Code::kUnsupported, "the dtype \"" + *dtype + "\" is not known", view.At("dtype"));
  }
  tensor.dtype = *parsed;
  const auto shape = TRY(view.Ints("shape", 0, INT64_MAX));
  if (!shape) return Fail(Code::kMalformed, "the key is missing", view.At("shape"));
  tensor.shape = *shape;
  const auto bytes = TRY(view.Int("n_bytes", 0, INT64_MAX));
  if (bytes) tensor.n_bytes = static_cast<uint64_t>(*bytes);
  return tensor;
}

Result<StoredModule> ParseModule(const JsonView& view, const std::string& key) {
  StoredModule module{.key = key, .pointer = view.At().pointer};
  const auto format = TRY(view.Text("quant_format"));
  if (format && *format != "exl3") {
    return Fail(Code::kUnsupported, "the module's format is \"" + *format + "\"; exl3 is supported",
                view.At("quant_format"));
  }
  module.exl3 = format.has_value();
  module.bits_per_weight = TRY(view.Number("bits_per_weight"));
  // Compared before any conversion to an integer: 2.5 must not become 2.
  if (module.bits_per_weight &&
      !(*module.bits_per_weight >= 1.0 && *module.bits_per_weight <= 8.0)) {
    return Fail(Code::kOutOfRange, "bits_per_weight is outside 1 to 8", view.At("bits_per_weight"));
  }
  module.mcg_multiplier = TRY(Multiplier(view, "mcg_multiplier"));
  module.mul1_multiplier = TRY(Multiplier(view, "mul1_multiplier"));
  const auto stored = TRY(view.Object("stored_tensors"));
  if (!stored) return module;
  for (const std::string& name : stored->Keys()) {
    const auto tensor = TRY(stored->Object(name));
    if (!tensor) return Fail(Code::kMalformed, "expected an object", stored->At(name));
    module.tensors.push_back(TRY(ParseStoredTensor(*tensor, name)));
  }
  return module;
}

Status CheckTensor(const QuantizationConfig& config, const StoredModule& module,
                   const StoredTensor& stored, const TensorView* found) {
  const Locator where{.file = config.file,
                      .pointer = module.pointer + "/stored_tensors" + PointerToken(stored.name),
                      .tensor = stored.name};
  if (found == nullptr) {
    return Fail(Code::kMismatch, "tensor_storage lists a tensor that no shard holds", where);
  }
  if (found->dtype != stored.dtype || found->shape != stored.shape) {
    return Fail(Code::kMismatch,
                "tensor_storage says " + std::string(DTypeName(stored.dtype)) + " " +
                    ShapeText(stored.shape) + ", the shard holds " +
                    std::string(DTypeName(found->dtype)) + " " + ShapeText(found->shape),
                where);
  }
  if (stored.n_bytes && *stored.n_bytes != found->bytes.size()) {
    return Fail(Code::kMismatch,
                "tensor_storage says " + std::to_string(*stored.n_bytes) +
                    " bytes, the shard holds " + std::to_string(found->bytes.size()),
                where);
  }
  return {};
}

Status CheckMultiplier(const QuantizationConfig& config, const StoredModule& module,
                       std::optional<uint32_t> stated, uint32_t standard, const char* suffix,
                       std::span<const TensorView> tensors) {
  if (!stated) return {};
  const Locator where{.file = config.file,
                      .pointer = module.pointer + "/" + suffix + "_multiplier",
                      .tensor = module.key + "." + suffix};
  if (*stated != standard) {
    return Fail(Code::kUnsupported,
                "the codebook's multiplier is " + std::to_string(*stated) + "; " +
                    std::to_string(standard) + " is supported",
                where);
  }
  if (FindTensor(tensors, module.key + "." + suffix) != nullptr) return {};
  return Fail(Code::kMismatch, "tensor_storage states a multiplier, no shard holds its marker",
              where);
}

Status CheckWidth(const QuantizationConfig& config, const StoredModule& module,
                  const TensorView* trellis) {
  if (!module.bits_per_weight || trellis == nullptr || trellis->shape.size() != 3) return {};
  const double width = static_cast<double>(trellis->shape[2]) / 16.0;
  if (*module.bits_per_weight == width) return {};
  return Fail(Code::kMismatch,
              "bits_per_weight is not the trellis's width, " + std::to_string(trellis->shape[2]) +
                  " words or " + std::to_string(width).substr(0, 3) + " bits",
              {.file = config.file,
               .pointer = module.pointer + "/bits_per_weight",
               .tensor = trellis->name});
}

Result<std::optional<double>> AverageBits(const JsonView& view) {
  const auto bits = TRY(view.Number("bits"));
  if (bits && !(*bits >= 1.0 && *bits <= 8.0)) {
    return Fail(Code::kOutOfRange, "bits is outside 1 to 8", view.At("bits"));
  }
  return bits;
}

Result<std::optional<Codebook>> StatedCodebook(const JsonView& view) {
  const auto codebook = TRY(view.Text("codebook"));
  if (!codebook) return std::nullopt;
  for (const Codebook known : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    if (*codebook == CodebookName(known)) return known;
  }
  return Fail(Code::kUnsupported,
              "the codebook is \"" + *codebook + "\"; 3inst, mcg and mul1 are supported",
              view.At("codebook"));
}

Result<StoredModule> ModuleAt(const JsonView& storage, const std::string& key) {
  const auto module = TRY(storage.Object(key));
  if (!module) return Fail(Code::kMalformed, "expected an object", storage.At(key));
  return TRY(ParseModule(*module, key));
}

// Notes the fault of each part; stops where the quantization is another one.
Status ReadParts(const Json& value, QuantizationReading* reading) {
  QuantizationConfig& config = reading->config;
  const JsonView view = TRY(JsonView::Of(value, config.file, config.pointer));
  const auto method = TRY(view.Text("quant_method"));
  if (!method) return Fail(Code::kMalformed, "the key is missing", view.At("quant_method"));
  if (*method != "exl3") {
    return Fail(Code::kUnsupported, "the quantization is \"" + *method + "\"; exl3 is supported",
                view.At("quant_method"));
  }
  const auto take = [reading](auto from, auto* to) {
    if (from.has_value()) {
      *to = std::move(*from);
    } else {
      reading->faults.push_back(from.error());
    }
  };
  std::optional<std::string> version;
  take(view.Text("version"), &version);
  config.version = version.value_or("");
  take(AverageBits(view), &config.bits);
  take(WholeBits(view, "head_bits"), &config.head_bits);
  take(WholeBits(view, "mtp_bits"), &config.mtp_bits);
  take(StatedCodebook(view), &config.codebook);
  const auto storage = TRY(view.Object("tensor_storage"));
  if (!storage) return {};
  for (const std::string& key : storage->Keys()) {
    StoredModule module;
    take(ModuleAt(*storage, key), &module);
    if (!module.key.empty()) config.storage.push_back(std::move(module));
  }
  return {};
}

}  // namespace

QuantizationReading ReadQuantizationConfig(const Json& value, const std::string& file,
                                           const std::string& pointer) {
  QuantizationReading reading{.config = {.file = file, .pointer = pointer}};
  const Status read = ReadParts(value, &reading);
  if (!read.has_value()) reading.faults.push_back(read.error());
  return reading;
}

Result<QuantizationConfig> ParseQuantizationConfig(const Json& value, const std::string& file,
                                                   const std::string& pointer) {
  QuantizationReading reading = ReadQuantizationConfig(value, file, pointer);
  if (!reading.faults.empty()) return Fail(std::move(reading.faults.front()));
  return std::move(reading.config);
}

std::vector<Error> Disagreements(const QuantizationConfig& a, const QuantizationConfig& b) {
  std::vector<Error> faults;
  const auto compare = [&](const char* key, const auto& x, const auto& y) {
    if (!x || !y || *x == *y) return;
    faults.push_back({.code = Code::kMismatch,
                      .message = "the value is not the one in " + a.file,
                      .where = {.file = b.file, .pointer = b.pointer + "/" + key}});
  };
  compare("bits", a.bits, b.bits);
  compare("head_bits", a.head_bits, b.head_bits);
  compare("mtp_bits", a.mtp_bits, b.mtp_bits);
  compare("codebook", a.codebook, b.codebook);
  return faults;
}

Status CheckAgreement(const QuantizationConfig& a, const QuantizationConfig& b) {
  std::vector<Error> faults = Disagreements(a, b);
  if (!faults.empty()) return Fail(std::move(faults.front()));
  return {};
}

std::vector<Error> StorageFaults(const QuantizationConfig& config,
                                 std::span<const TensorView> tensors) {
  std::vector<Error> faults;
  const auto note = [&faults](const Status& status) {
    if (!status.has_value()) faults.push_back(status.error());
  };
  for (const StoredModule& module : config.storage) {
    for (const StoredTensor& stored : module.tensors) {
      note(CheckTensor(config, module, stored, FindTensor(tensors, stored.name)));
    }
    note(CheckMultiplier(config, module, module.mcg_multiplier, kMcgMultiplier, "mcg", tensors));
    note(CheckMultiplier(config, module, module.mul1_multiplier, kMul1Multiplier, "mul1", tensors));
    note(CheckWidth(config, module, FindTensor(tensors, module.key + ".trellis")));
  }
  return faults;
}

Status CheckStorage(const QuantizationConfig& config, std::span<const TensorView> tensors) {
  std::vector<Error> faults = StorageFaults(config, tensors);
  if (!faults.empty()) return Fail(std::move(faults.front()));
  return {};
}

}  // namespace hallmark
