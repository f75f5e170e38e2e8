// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/noisy_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "conformance/harness/safetensors_writer.h"
#include "conformance/validate/error_band.h"
#include "conformance/validate/exl3_matrix.h"
#include "conformance/validate/model_copy.h"
#include "engine/base/float_types.h"
#include "engine/base/json.h"
#include "engine/base/random.h"
#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

// W [n, k] of a linear in BF16, with noise such that the NMSE is `nmse`.
Result<TensorSpec> SourceOf(const LinearSource& linear, const Exl3Group& group, double nmse) {
  const Exl3Matrix matrix = TRY(Exl3Matrix::Open(group));
  const auto k = static_cast<size_t>(linear.in_features);
  const auto n = static_cast<size_t>(linear.out_features);
  std::vector<float> weights(n * k);
  std::vector<float> block(static_cast<size_t>(Exl3Matrix::kBlockValues));
  double squares = 0;
  for (size_t i = 0; i < k; i += 128) {
    for (size_t j = 0; j < n; j += 128) {
      matrix.Block(static_cast<int64_t>(i / 128), static_cast<int64_t>(j / 128), block.data());
      for (size_t row = 0; row < 128 && i + row < k; ++row) {
        for (size_t column = 0; column < 128 && j + column < n; ++column) {
          const float value = block[row * 128 + column];
          weights[(j + column) * k + i + row] = value;
          squares += double{value} * value;
        }
      }
    }
  }
  // ||e||^2 / ||W_q + e||^2 = nmse for noise that knows nothing of W_q.
  const double size = std::sqrt(squares / static_cast<double>(n * k) * nmse / (1 - nmse));
  SplitMix64 random(linear.name().size());
  TensorSpec spec{.name = linear.name() + ".weight",
                  .dtype = DType::kBF16,
                  .shape = {linear.out_features, linear.in_features}};
  for (const float weight : weights) {
    const uint16_t bits = FloatToBf16(weight + static_cast<float>(size) * random.NextNormal());
    spec.bytes.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return spec;
}

}  // namespace

Status WriteNoisySource(const std::string& quantized, const std::string& out, const Noise& noise) {
  const Checkpoint checkpoint = TRY(Checkpoint::Open(quantized));
  const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
  std::set<std::string> groups;
  std::vector<TensorSpec> tensors;
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    if (group == nullptr) continue;
    groups.insert(linear->name() + ".");
    const auto asked = noise.find(linear->name());
    const double parts = asked == noise.end() ? kUsualNoise : asked->second;
    const double middle = ErrorBandOf({group->codebook, group->k2}).middle;
    tensors.push_back(TRY(SourceOf(*linear, *group, parts * middle)));
  }
  const ModelCopy whole(quantized);
  for (const TensorSpec& tensor : whole.tensors()) {
    const std::string prefix = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    if (!groups.contains(prefix)) tensors.push_back(tensor);
  }
  std::error_code error;
  std::filesystem::remove_all(out, error);
  std::filesystem::create_directories(out, error);
  if (error) return Fail(Code::kIo, "cannot make the folder: " + error.message(), {.file = out});
  TRY(WriteSafetensors(out + "/model.safetensors", tensors));
  Json config = TRY(ReadJsonFile(quantized + "/config.json"));
  config.erase("quantization_config");
  TRY(WriteText(out + "/config.json", config.dump(1)));
  const std::string tokenizer = "/tokenizer.json";
  if (!std::filesystem::exists(quantized + tokenizer, error)) return {};
  std::filesystem::copy_file(quantized + tokenizer, out + tokenizer, error);
  if (error) return Fail(Code::kIo, "cannot copy: " + error.message(), {.file = out + tokenizer});
  return {};
}

}  // namespace hallmark
