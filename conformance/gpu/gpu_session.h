// SPDX-License-Identifier: Apache-2.0
// What the GPU suites open: sessions on the device, golden models or synthetic ones of chosen
// shapes. Not for suites that run without a GPU (conformance/cuda has a driver of host memory).
#ifndef HALLMARK_CONFORMANCE_GPU_GPU_SESSION_H_
#define HALLMARK_CONFORMANCE_GPU_GPU_SESSION_H_

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/row.h"
#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

inline constexpr char kSuiteDevice[] = "cuda";
inline constexpr char kScribe[] = "scribe-11m-exl3";
inline constexpr char kScribeDrafter[] = "scribe-11m-dflash2";
inline constexpr char kPrism[] = "prism-exl3";
inline constexpr char kPrismDrafter[] = "prism-dflash";

inline std::string GoldenModelPath(const std::string& name) { return GoldenPath("models/" + name); }
inline std::string KvName(KvType kv) { return kv == KvType::kBf16 ? "bf16" : "fp8"; }

inline Result<std::unique_ptr<Session>> OpenOnDevice(const std::string& directory,
                                                     SessionOptions options = {}) {
  options.device = kSuiteDevice;
  return Session::Open(directory, options);
}

// A synthetic checkpoint in a folder of this process that goes with the object. Its last norm is
// damped, so that random weights leave logits with more than one likely id.
class SyntheticFolder {
 public:
  static Result<SyntheticFolder> Write(const SyntheticModel& model, int64_t max_positions = 4096) {
    SyntheticFolder folder = TRY(Make());
    CheckpointWriter writer(model);
    writer.Set("/text_config/max_position_embeddings", std::to_string(max_positions));
    const std::string norm = writer.Name("norm.weight");
    writer.Tensor(norm) = FloatTensor(norm, DType::kBF16, {model.hidden}, [](int64_t i) {
      return -0.875f + static_cast<float>(i % 7) / 64.0f;
    });
    TRY(writer.Write(folder.path_));
    return folder;
  }
  // An empty one.
  static Result<SyntheticFolder> Make() {
    static int made = 0;
    const std::string name =
        "hallmark_gpu." + std::to_string(::getpid()) + "." + std::to_string(made++);
    const std::string path = (std::filesystem::temp_directory_path() / name).string();
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return Fail(Code::kIo, "cannot make the folder", {.file = path});
    return SyntheticFolder(path);
  }
  ~SyntheticFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  SyntheticFolder(SyntheticFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SyntheticFolder& operator=(SyntheticFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit SyntheticFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Prints what a row counted; why it is no pass, empty if it is one.
inline std::string WhyNotPassed(const Result<Row>& result, const std::string& name) {
  if (!result.has_value()) return name + ": " + result.error().ToString();
  std::string counts;
  for (const auto& [what, count] : result->counts) {
    counts += " " + what + "=" + std::to_string(count);
  }
  std::printf("%s:%s\n", name.c_str(), counts.c_str());
  if (result->outcome == Outcome::kPass) return "";
  return name + ": " + std::string(OutcomeName(result->outcome)) + ": " + result->detail;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_GPU_GPU_SESSION_H_
