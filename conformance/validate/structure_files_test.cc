// SPDX-License-Identifier: Apache-2.0
// Clause: format-reject. The structure step on folders, files, headers and indexes that are broken.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/validate/broken_checkpoint.h"
#include "conformance/validate/structure.h"
#include "engine/base/json.h"

namespace hallmark {
namespace {

namespace fs = std::filesystem;
using Copy = CheckpointCopy;
using Edit = std::function<void(const std::string&)>;

const std::string kFile = "model.safetensors";
const std::string kIndex = "model.safetensors.index.json";
const std::string kFirst = CheckpointCopy::ShardFile(0);
const std::string kSecond = CheckpointCopy::ShardFile(1);
const std::string kMap = "/weight_map/";
constexpr const char* kPointerText =
    "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n";

Edit Put(std::string name, std::string text) {
  return [=](const std::string& folder) {
    fs::create_directories(fs::path(folder + "/" + name).parent_path());
    ASSERT_TRUE(WriteText(folder + "/" + name, text).has_value());
  };
}
Edit Delete(std::string name) {
  return [=](const std::string& folder) { ASSERT_TRUE(fs::remove(folder + "/" + name)); };
}
Edit Move(std::string from, std::string to) {
  return [=](const std::string& folder) { fs::rename(folder + "/" + from, folder + "/" + to); };
}
Edit Cut(std::string name, uint64_t bytes) {
  return [=](const std::string& folder) { fs::resize_file(folder + "/" + name, bytes); };
}

// The name of the tensor of a shard that comes first in the index.
std::string FirstOf(int shard) {
  Copy copy = Copy::Complete();
  copy.Shard();
  std::string first = copy.shard(shard).front().name;
  for (const TensorSpec& tensor : copy.shard(shard)) first = std::min(first, tensor.name);
  return first;
}

BrokenCheckpoint Folder(std::string name, Edit edit, Expected expected) {
  return {.name = std::move(name), .edit = std::move(edit), .expected = {std::move(expected)}};
}
BrokenCheckpoint Sharded(std::string name, std::function<void(Copy&)> plant, Edit edit,
                         std::vector<Expected> expected) {
  return {.name = std::move(name),
          .plant = std::move(plant),
          .edit = std::move(edit),
          .expected = std::move(expected),
          .sharded = true};
}

std::vector<BrokenCheckpoint> Folders() {
  constexpr Code kMismatch = Code::kMismatch;
  constexpr Code kNotFound = Code::kNotFound;
  constexpr Code kMalformed = Code::kMalformed;
  std::vector<BrokenCheckpoint> cases = {
      Folder("NoFolder", [](const std::string& f) { fs::remove_all(f); },
             {"not-a-folder", kNotFound, ""}),
      Folder("AFileInPlaceOfTheFolder",
             [](const std::string& f) {
               fs::remove_all(f);
               ASSERT_TRUE(WriteText(f, "x").has_value());
             },
             {"not-a-folder", Code::kUnsupported, ""}),
      Folder("ControlFileOfADownload", Put(kFile + ".aria2", "x"),
             {"unfinished-download", kMismatch, kFile + ".aria2"}),
      Folder("PartOfAFileThatIsNotThere", Put("vocab.json.part", "x"),
             {"unfinished-download", kMismatch, "vocab.json.part"}),
      Folder("IncompleteFileThatIsNotThere", Put("README.md.incomplete", "x"),
             {"unfinished-download", kMismatch, "README.md.incomplete"}),
      Folder("BrowsersPartOfAFileThatIsNotThere", Put("merges.txt.crdownload", "x"),
             {"unfinished-download", kMismatch, "merges.txt.crdownload"}),
      Folder("PartOfAFileThatIsThere", Put(kFile + ".part", "x"),
             {"leftover-download", kMismatch, kFile + ".part"}),
      Folder("IncompleteFileInTheCache", Put(".cache/huggingface/download/a.b.incomplete", "x"),
             {"leftover-download", kMismatch, ".cache/huggingface/download/a.b.incomplete"}),
      Folder("WeightsArePointer", Put(kFile, kPointerText), {"pointer-file", kMalformed, kFile}),
      Folder("TokenizerIsPointer", Put("tokenizer.json", kPointerText),
             {"pointer-file", kMalformed, "tokenizer.json"}),
      Folder("ConfigIsPointer", Put("config.json", kPointerText),
             {"pointer-file", kMalformed, "config.json"}),
      Folder("WeightsAreAnAnnexedText", Put(kFile, "/annex/objects/SHA256E-s7--00.safetensors\n"),
             {"pointer-file", kMalformed, kFile}),
      Folder("WeightsAreAnAnnexedLink",
             [](const std::string& f) {
               fs::remove(f + "/" + kFile);
               fs::create_symlink("../.git/annex/objects/x", f + "/" + kFile);
             },
             {"pointer-file", kNotFound, kFile}),
      Folder("WeightsAreAPage", Put(kFile, "<!DOCTYPE html><html></html>"),
             {"not-the-file", kMalformed, kFile}),
      Folder("ConfigIsAnAnswer", Put("config.json", "Entry not found"),
             {"not-the-file", kMalformed, "config.json"}),
      Folder("GenerationConfigIsAPage", Put("generation_config.json", "\n <html>"),
             {"not-the-file", kMalformed, "generation_config.json"}),
      Folder("WeightsOfNoBytes", Put(kFile, ""), {"empty-file", kMalformed, kFile}),
      Folder("ConfigOfNoBytes", Put("config.json", ""), {"empty-file", kMalformed, "config.json"}),
      Folder("TokenizerOfNoBytes", Put("tokenizer.json", ""),
             {"empty-file", kMalformed, "tokenizer.json"}),
      Folder("TemplateOfNoBytes", Put("chat_template.jinja", ""),
             {"empty-file", kMalformed, "chat_template.jinja"}),
      Folder("GenerationConfigIsAStrayLink",
             [](const std::string& f) {
               fs::remove(f + "/generation_config.json");
               fs::create_symlink("nowhere", f + "/generation_config.json");
             },
             {"unreadable-file", kNotFound, "generation_config.json"}),
      Folder("ConfigIsALoopOfLinks",
             [](const std::string& f) {
               fs::remove(f + "/config.json");
               fs::create_symlink("config.json", f + "/config.json");
             },
             {"unreadable-file", Code::kIo, "config.json"}),
      Folder("WeightsAreAFolder",
             [](const std::string& f) {
               fs::remove(f + "/" + kFile);
               fs::create_directory(f + "/" + kFile);
             },
             {"unreadable-file", Code::kUnsupported, kFile}),
      Folder("TokenizerIsAPipe",
             [](const std::string& f) {
               fs::remove(f + "/tokenizer.json");
               ASSERT_EQ(::mkfifo((f + "/tokenizer.json").c_str(), 0600), 0);
             },
             {"unreadable-file", Code::kUnsupported, "tokenizer.json"}),
      Folder("NoConfig", Delete("config.json"), {"config-missing", kNotFound, "config.json"}),
      Folder("NoWeights", Delete(kFile), {"weights-missing", kNotFound, kIndex}),
      Folder("WeightsUnderAShardsName", Move(kFile, "model-00001-of-00001.safetensors"),
             {"index-missing", kNotFound, kIndex}),
      Folder("AShardBesideTheSingleFile", Put(kFirst, "x"), {"stray-shard", kMismatch, kFirst}),
      Folder("WeightsInAnotherForm", Put("pytorch_model.bin", "x"),
             {"unused-file", Code::kUnsupported, "pytorch_model.bin"}),
  };
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "quantization_config.json"}) {
    std::string title = "Broken_" + std::string(name);
    std::replace(title.begin(), title.end(), '.', '_');
    cases.push_back(Folder(title, Put(name, "{\"a\": 1"), {"json-broken", kMalformed, name}));
  }
  cases.push_back(Folder("ConfigAsAList", Put("config.json", "[]"),
                         {"json-broken", kMalformed, "config.json"}));
  cases.push_back(Folder("ConfigWithAKeyTwice", Put("config.json", R"({"a":1,"a":2})"),
                         {"json-broken", kMalformed, "config.json", "/a"}));
  return cases;
}

std::vector<BrokenCheckpoint> Headers() {
  const auto bytes = [](std::string name, std::string text, std::string check, Code code,
                        std::string tensor, std::optional<uint64_t> byte) {
    return Folder(std::move(name), Put(kFile, std::move(text)),
                  {std::move(check), code, kFile, "", std::move(tensor), byte});
  };
  const auto one = [](const std::string& shape, const std::string& offsets, const std::string& data,
                      const std::string& rest = "") {
    return SafetensorsText("{\"a\":{\"dtype\":\"U8\",\"shape\":" + shape +
                               ",\"data_offsets\":" + offsets + "}" + rest + "}",
                           data);
  };
  const std::string b = ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":";
  constexpr Code kMalformed = Code::kMalformed;
  const std::string cap("\x01\xe1\xf5\x05\0\0\0\0", 8);  // 100,000,001
  return {
      bytes("SevenBytes", "1234567", "shard-header", kMalformed, "", 7),
      bytes("HeaderOfNoLength", std::string(8, '\0') + "{}", "shard-header", kMalformed, "", 0),
      bytes("HeaderAboveTheCap", cap + "{}", "shard-header", Code::kOutOfRange, "", 0),
      bytes("HeaderCutShort", std::string("\x40\0\0\0\0\0\0\0{\"a\":", 13), "shard-truncated",
            kMalformed, "", 13),
      bytes("HeaderIsAList", SafetensorsText("[]"), "shard-header", kMalformed, "", 8),
      bytes("HeaderPaddedWithNul", SafetensorsText(std::string("{}\0\0", 4)), "shard-header",
            kMalformed, "", 10),
      bytes("DataCutShort", one("[16]", "[0,16]", "123456789"), "shard-truncated", kMalformed, "a",
            {}),
      bytes("DataTooLong", one("[2]", "[0,2]", "xxx"), "shard-header", kMalformed, "", {}),
      bytes("Hole", one("[2]", "[0,2]", "xxxxx", b + "[3,5]}"), "shard-header", kMalformed, "b",
            {}),
      bytes("Overlap", one("[2]", "[0,2]", "xxx", b + "[1,3]}"), "shard-header", kMalformed, "b",
            {}),
      bytes("OffsetsReversed", one("[16]", "[16,0]", std::string(16, 'x')), "shard-header",
            kMalformed, "a", {}),
      bytes("OffsetsUnlikeTheShape", one("[15]", "[0,16]", std::string(16, 'x')), "shard-header",
            kMalformed, "a", {}),
      bytes("NameTwice",
            one("[2]", "[0,2]", "xx",
                ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"),
            "shard-header", kMalformed, "a", {}),
      bytes("DtypeUnknown",
            SafetensorsText("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", "x"),
            "shard-header", Code::kUnsupported, "a", {}),
      Folder("LastByteMissing",
             [](const std::string& f) {
               fs::resize_file(f + "/" + kFile, fs::file_size(f + "/" + kFile) - 1);
             },
             {"shard-truncated", kMalformed, kFile, "", Copy::Complete().shard(0).back().name, {}}),
      Folder("OneByteTooMany",
             [](const std::string& f) {
               fs::resize_file(f + "/" + kFile, fs::file_size(f + "/" + kFile) + 1);
             },
             {"shard-header", kMalformed, kFile}),
  };
}

std::vector<BrokenCheckpoint> Indexes() {
  constexpr Code kMismatch = Code::kMismatch;
  constexpr Code kMalformed = Code::kMalformed;
  const std::string first = FirstOf(0);
  const std::string second = FirstOf(1);
  const auto set = [](std::string pointer, std::string json) {
    return [=](Copy& c) { c.Set(kIndex, pointer, json); };
  };
  std::vector<BrokenCheckpoint> cases = {
      Sharded("ShardMissing", {}, Delete(kSecond),
              {{"shard-missing", Code::kNotFound, kSecond, kMap + second, second}}),
      Sharded("BothShardsMissing", {},
              [](const std::string& f) {
                Delete(kFirst)(f);
                Delete(kSecond)(f);
              },
              {{"shard-missing", Code::kNotFound, kFirst, kMap + first, first},
               {"shard-missing", Code::kNotFound, kSecond, kMap + second, second}}),
      Sharded("ShardOfNoBytes", {}, Put(kSecond, ""), {{"empty-file", kMalformed, kSecond}}),
      Sharded("ShardIsPointer", {}, Put(kFirst, kPointerText),
              {{"pointer-file", kMalformed, kFirst}}),
      Sharded("BothShardsArePointers", {},
              [](const std::string& f) {
                Put(kFirst, kPointerText)(f);
                Put(kSecond, kPointerText)(f);
              },
              {{"pointer-file", kMalformed, kFirst}, {"pointer-file", kMalformed, kSecond}}),
      Sharded("ShardCutInItsHeader", {}, Cut(kSecond, 100),
              {{"shard-truncated", kMalformed, kSecond, "", "", 100}}),
      Sharded("ShardStillDownloading", {},
              [](const std::string& f) {
                fs::rename(f + "/" + kSecond, f + "/" + kSecond + ".incomplete");
              },
              {{"unfinished-download", kMismatch, kSecond + ".incomplete"},
               {"shard-missing", Code::kNotFound, kSecond, kMap + second, second}}),
      Sharded("ShardAndIndexOfAnotherName", {}, Move(kSecond, "other.safetensors"),
              {{"shard-missing", Code::kNotFound, kSecond, kMap + second, second}}),
      Sharded("NoIndex", {}, Delete(kIndex), {{"index-missing", Code::kNotFound, kIndex}}),
      Sharded("IndexBroken", {}, Put(kIndex, "{"), {{"json-broken", kMalformed, kIndex}}),
      Sharded("IndexWithoutAMap", [](Copy& c) { c.Erase(kIndex, "/weight_map"); }, {},
              {{"index-entry", kMalformed, kIndex, "/weight_map"}}),
      Sharded("MapEmpty", set("/weight_map", "{}"), {},
              {{"index-entry", kMalformed, kIndex, "/weight_map"}}),
      Sharded("MapAsAList", set("/weight_map", "[]"), {},
              {{"index-entry", kMalformed, kIndex, "/weight_map"}}),
      Sharded("FileNameThatLeavesTheFolder", set(kMap + second, "\"../" + kSecond + "\""), {},
              {{"index-entry", kMalformed, kIndex, kMap + second, second}}),
      Sharded("TwoFileNamesAtFault",
              [=](Copy& c) {
                c.Set(kIndex, kMap + first, "null");
                c.Set(kIndex, kMap + second, "\"a.bin\"");
              },
              {},
              {{"index-entry", kMalformed, kIndex, kMap + std::min(first, second),
                std::min(first, second)},
               {"index-entry", kMalformed, kIndex, kMap + std::max(first, second),
                std::max(first, second)}}),
      Sharded("TotalSizeOfAnotherPack", set("/metadata/total_size", "1"), {},
              {{"index-total-size", kMismatch, kIndex, "/metadata/total_size"}}),
      Sharded("TotalSizeNegative", set("/metadata/total_size", "-1"), {},
              {{"index-entry", Code::kOutOfRange, kIndex, "/metadata/total_size"}}),
      Sharded("AThirdShard", {},
              [](const std::string& f) {
                fs::copy_file(f + "/" + kFirst, f + "/model-00003-of-00003.safetensors");
              },
              {{"stray-shard", kMismatch, "model-00003-of-00003.safetensors"}}),
      Sharded("ASingleFileBesideTheIndex", {},
              [](const std::string& f) { fs::copy_file(f + "/" + kFirst, f + "/" + kFile); },
              {{"stray-shard", kMismatch, kFile}}),
      Sharded("IndexLacksATensor", [=](Copy& c) { c.Erase(kIndex, kMap + second); }, {},
              {{"index-incomplete", kMismatch, kSecond, "", second}}),
      Sharded("IndexNamesATensorItsShardLacks", [=](Copy& c) { c.Remove(second); }, {},
              {{"index-stale", kMismatch, kSecond, kMap + second, second}}),
      Sharded("IndexNamesATensorNobodyHas", set(kMap + "zzz.weight", "\"" + kSecond + "\""), {},
              {{"index-stale", kMismatch, kSecond, kMap + "zzz.weight", "zzz.weight"}}),
      Sharded("IndexPutsATensorInTheOtherShard", set(kMap + second, "\"" + kFirst + "\""), {},
              {{"index-wrong-shard", kMismatch, kIndex, kMap + second, second}}),
      Sharded("TensorInBothShards",
              [=](Copy& c) {
                const TensorSpec copy = c.Tensor(first);
                c.shard(1).push_back(copy);
              },
              {}, {{"duplicate-tensor", kMismatch, kSecond, "", first}}),
  };
  return cases;
}

class StructureFiles : public testing::TestWithParam<BrokenCheckpoint> {};

TEST_P(StructureFiles, FindsTheFaultAndNoOther) { ExpectFound(GetParam()); }

std::string NameOf(const testing::TestParamInfo<BrokenCheckpoint>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Folder, StructureFiles, testing::ValuesIn(Folders()), NameOf);
INSTANTIATE_TEST_SUITE_P(Header, StructureFiles, testing::ValuesIn(Headers()), NameOf);
INSTANTIATE_TEST_SUITE_P(Index, StructureFiles, testing::ValuesIn(Indexes()), NameOf);

TEST(StructureFiles, HasNothingToSayOfACompleteCheckpoint) {
  ExpectFound({.name = "control"});
  ExpectFound({.name = "sharded control", .sharded = true});
  ExpectFound({.name = "drafter", .drafter = true});
}

// Whatever the change is, made while the step is between two shards.
void ExpectChanged(const std::function<void(const std::string&)>& change, const std::string& name) {
  const std::string folder = ScratchFolder();
  CheckpointCopy copy = CheckpointCopy::Complete();
  copy.Shard();
  copy.Write(folder);
  bool changed = false;
  const auto report =
      ValidateStructure({.folder = folder}, [&](std::string_view, uint64_t done, uint64_t) {
        if (done != 1 || std::exchange(changed, true)) return;
        change(folder);
      });
  ASSERT_TRUE(report.has_value());
  ASSERT_TRUE(changed);
  ASSERT_FALSE(report->findings.empty());
  EXPECT_EQ(report->findings[0].check, "file-changed");
  EXPECT_EQ(report->findings[0].error.code, Code::kIo);
  EXPECT_EQ(report->findings[0].error.where.file, folder + "/" + name);
}

TEST(StructureFiles, SaysThatAShardGrewWhileItWasRead) {
  ExpectChanged(
      [](const std::string& folder) {
        std::ofstream(folder + "/" + kFirst, std::ios::app) << "more";
      },
      kFirst);
}

TEST(StructureFiles, SaysThatAShardWasReplacedByOneOfTheSameSize) {
  ExpectChanged(
      [](const std::string& folder) {
        const std::string path = folder + "/" + kFirst;
        fs::copy_file(path, path + ".new");
        fs::rename(path + ".new", path);
      },
      kFirst);
}

TEST(StructureFiles, SaysThatAShardVanished) {
  ExpectChanged([](const std::string& folder) { fs::remove(folder + "/" + kFirst); }, kFirst);
}

}  // namespace
}  // namespace hallmark
