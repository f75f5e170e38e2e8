// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(path_);
    fs::copy(GoldenPath("models/prism-exl3"), path_);
  }
  std::vector<std::string> Reasons() const {
    const PublishedReceipt published = PublishedReceiptOf("prism-exl3");
    return ReasonsOf(VerifyBytes(published.name, published.bytes, {.checkpoint_folder = path_}));
  }
  std::string path_ = testing::TempDir() + "prism";
};

using Texts = std::vector<std::string>;
constexpr char kFiles[] = "/predicate/core/checkpoint/files";

TEST_F(Folder, OfTheReceiptPasses) { EXPECT_EQ(Reasons(), Texts{}); }

TEST_F(Folder, OfAnotherCheckpointIsDeniedByEachFile) {
  fs::remove_all(path_);
  fs::copy(GoldenPath("models/scribe-11m-exl3"), path_);
  const Texts reasons = Reasons();
  EXPECT_EQ(reasons[0], std::string("folder-file-bytes ") + kFiles + "/0/bytes");
  EXPECT_EQ(reasons[1], std::string("folder-file-bytes ") + kFiles + "/1/bytes");
}

TEST_F(Folder, AChangedFileIsDenied) {
  std::fstream file(path_ + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000);
  const char byte = static_cast<char>(file.peek() ^ 1);
  file.seekp(5000);
  file.put(byte);
  file.close();
  EXPECT_EQ(Reasons(), Texts{std::string("folder-file-digest ") + kFiles + "/1/sha256"});
}

TEST_F(Folder, AFileThatIsGoneIsDenied) {
  fs::remove(path_ + "/config.json");
  EXPECT_EQ(Reasons(), Texts{std::string("folder-file-missing ") + kFiles + "/0/name"});
}

TEST_F(Folder, AFileTheReceiptLeavesOutIsDenied) {
  std::ofstream(path_ + "/tokenizer.json") << "{}";
  EXPECT_EQ(Reasons(), Texts{std::string("folder-file-unlisted ") + kFiles});
}

TEST_F(Folder, ThatCannotBeReadDecidesNothing) {
  const PublishedReceipt published = PublishedReceiptOf("prism-exl3");
  const auto verdict = VerifyReceipt(BuiltInKnowledge(), published.name, published.bytes,
                                     {.checkpoint_folder = path_ + "/none"});
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().code, Code::kIo);
}

TEST_F(Folder, OfADrafterNeedsAReceiptWithOne) {
  const PublishedReceipt published = PublishedReceiptOf("prism-exl3");
  EXPECT_EQ(ReasonsOf(VerifyBytes(published.name, published.bytes, {.drafter_folder = path_})),
            Texts{"folder-without-files /predicate/core/drafter"});
}

}  // namespace
}  // namespace hallmark::verify
