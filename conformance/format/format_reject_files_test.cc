// SPDX-License-Identifier: Apache-2.0
// Clause format-reject: the safetensors file as bytes on disk, the folder, and the index against
// files and headers.
#include <gtest/gtest.h>

#include <filesystem>

#include "conformance/format/fault.h"

namespace hallmark {
namespace {

using Writer = CheckpointWriter;
namespace fs = std::filesystem;

const std::string kFile = "model.safetensors";
const std::string kIndex = "model.safetensors.index.json";
const std::string kQkv = "model.language_model.layers.0.linear_attn.in_proj_qkv.";

// Puts these bytes in place of model.safetensors.
Fault Bytes(std::string name, std::string text, std::string tensor = "",
            Code code = Code::kMalformed) {
  return {.name = std::move(name),
          .folder_edit =
              [=](const std::string& folder) {
                ASSERT_TRUE(WriteText(folder + "/" + kFile, text).has_value());
              },
          .phase = Phase::kOpen,
          .code = code,
          .file = kFile,
          .tensor = std::move(tensor)};
}

// One U8 tensor "a" with the given record fields, behind its header.
std::string One(const std::string& shape, const std::string& offsets, const std::string& data,
                const std::string& rest = "") {
  return SafetensorsText("{\"a\":{\"dtype\":\"U8\",\"shape\":" + shape +
                             ",\"data_offsets\":" + offsets + "}" + rest + "}",
                         data);
}

std::string WithLength(uint64_t length, const std::string& rest) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i));
  return text + rest;
}

std::vector<Fault> HeaderFaults() {
  const std::string b = ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":";
  const std::string data(16, 'x');
  return {
      Bytes("FileOfNoBytes", ""),
      Bytes("FileOfSevenBytes", "\x02\0\0\0\0\0\0"),
      Bytes("LengthOfZero", WithLength(0, "{}")),
      Bytes("LengthBeyondTheFile", WithLength(3, "{}")),
      Bytes("LengthOneAboveTheCap", WithLength(100'000'001, "{}"), "", Code::kOutOfRange),
      Bytes("LengthOfAllOnes", WithLength(~uint64_t{0}, "{}"), "", Code::kOutOfRange),
      Bytes("PaddedWithNul", SafetensorsText(std::string("{}\0\0\0\0\0\0", 8))),
      Bytes("EmptyObjectBeforeTheMetadata", SafetensorsText("{},\"__metadata__\":{\"a\":\"b\"}")),
      Bytes("HeaderIsAList", SafetensorsText("[]")),
      Bytes("HeaderIsCutShort", SafetensorsText("{\"a\":{\"dtype\":\"U8\""), "a"),
      Bytes("NestedWithoutEnd", SafetensorsText("{\"a\":" + std::string(100000, '[')), "a"),
      Bytes("OffsetsFarBeyondTheFile", One("[16]", "[1099511627776,1099511627792]", data), "a"),
      Bytes("OffsetsNegative", One("[16]", "[-16,0]", data), "a"),
      Bytes("OffsetsWiderThanTheShape", One("[15]", "[0,16]", data), "a"),
      Bytes("OffsetsNarrowerThanTheShape", One("[17]", "[0,16]", data), "a"),
      Bytes("OffsetsReversed", One("[16]", "[16,0]", data), "a"),
      Bytes("OffsetsAsBooleans", One("[1]", "[false,true]", "x"), "a"),
      Bytes("OffsetsWrapAround", One("[16]", "[18446744073709551600,0]", data), "a"),
      Bytes("DataCutShort", One("[16]", "[0,16]", data.substr(1)), "a"),
      Bytes("DataTooLong", One("[16]", "[0,16]", data + "x")),
      Bytes("HoleOfOneByte", One("[2]", "[0,2]", "xxxxx", b + "[3,5]}"), "b"),
      Bytes("OverlapOfOneByte", One("[2]", "[0,2]", "xxx", b + "[1,3]}"), "b"),
      Bytes("NameTwice",
            One("[2]", "[0,2]", "xx",
                ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"),
            "a"),
      Bytes("ShapeOfFloats", One("[2.0]", "[0,2]", "xx"), "a"),
      Bytes("ShapeOverflows", One("[4294967296,4294967296]", "[0,0]", ""), "a"),
      Bytes("DtypeUnknown",
            SafetensorsText("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", "x"),
            "a", Code::kUnsupported),
      Bytes("NameNotUtf8",
            SafetensorsText("{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}")),
  };
}

std::function<void(const std::string&)> Delete(std::string file) {
  return [=](const std::string& folder) { ASSERT_TRUE(fs::remove(folder + "/" + file)); };
}

std::function<void(const std::string&)> Copy(std::string from, std::string to) {
  return [=](const std::string& folder) { fs::copy_file(folder + "/" + from, folder + "/" + to); };
}

std::vector<Fault> FolderFaults() {
  const auto fault = [](std::string name, Code code, std::string file,
                        std::function<void(const std::string&)> edit) -> Fault {
    return {.name = std::move(name),
            .folder_edit = std::move(edit),
            .phase = Phase::kOpen,
            .code = code,
            .file = std::move(file)};
  };
  return {
      fault("NoFolder", Code::kNotFound, "", [](const std::string& f) { fs::remove_all(f); }),
      fault("AFileInPlaceOfTheFolder", Code::kUnsupported, "",
            [](const std::string& f) {
              fs::remove_all(f);
              ASSERT_TRUE(WriteText(f, "x").has_value());
            }),
      fault("InterruptedBeforeTheConfig", Code::kNotFound, "config.json", Delete("config.json")),
      fault("NoWeights", Code::kNotFound, kIndex, Delete(kFile)),
      fault("GenerationConfigIsAStrayLink", Code::kNotFound, "generation_config.json",
            [](const std::string& f) {
              fs::create_symlink("nowhere", f + "/generation_config.json");
            }),
      fault("IndexIsALoopOfLinks", Code::kIo, kIndex,
            [](const std::string& f) { fs::create_symlink(kIndex, f + "/" + kIndex); }),
      fault("WeightsAreAFolder", Code::kUnsupported, kFile,
            [](const std::string& f) {
              fs::remove(f + "/" + kFile);
              fs::create_directory(f + "/" + kFile);
            }),
      fault("AShardBesideTheSingleFile", Code::kMismatch, "model-00001-of-00002.safetensors",
            Copy(kFile, "model-00001-of-00002.safetensors")),
  };
}

// The control has two shards.
Fault OfIndex(std::string name, Code code, std::string file, std::string pointer,
              std::string tensor, std::function<void(Writer&)> plant) {
  return {.name = std::move(name),
          .plant = std::move(plant),
          .shards = 2,
          .phase = Phase::kOpen,
          .code = code,
          .file = std::move(file),
          .pointer = std::move(pointer),
          .tensor = std::move(tensor)};
}
Fault OfIndex(Fault fault, std::function<void(const std::string&)> edit) {
  fault.folder_edit = std::move(edit);
  return fault;
}

std::vector<Fault> IndexFaults() {
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string second = "model-00002-of-00002.safetensors";
  const std::string suh = kQkv + "suh";                         // in the first shard
  const std::string last = "model.language_model.norm.weight";  // in the second
  const std::string map = "/weight_map/";
  const auto set = [=](std::string pointer, std::string json) {
    return [=](Writer& w) { w.SetIn(kIndex, pointer, json); };
  };
  std::vector<Fault> faults = {
      OfIndex(
          OfIndex("ShardAbsent", Code::kNotFound, second, map + "lm_head.mul1", "lm_head.mul1", {}),
          Delete(second)),
      OfIndex(OfIndex("ShardRenamed", Code::kNotFound, second, "", "", {}),
              [=](const std::string& f) {
                fs::rename(f + "/" + second, f + "/other-00002.safetensors");
              }),
      OfIndex("IndexOmitsAProjection", Code::kMismatch, first, "", kQkv + "mul1",
              [=](Writer& w) {
                for (const char* part : {"trellis", "suh", "svh", "mul1"}) {
                  w.EraseIn(kIndex, map + kQkv + part);
                }
              }),
      OfIndex("IndexNamesATensorItsShardLacks", Code::kMismatch, first, map + suh, suh,
              [=](Writer& w) { w.Remove(suh); }),
      OfIndex("IndexNamesATensorNoShardHas", Code::kMismatch, second, map + "x.weight", "x.weight",
              set(map + "x.weight", "\"" + second + "\"")),
      OfIndex("IndexPutsATensorInTheOtherShard", Code::kMismatch, kIndex, map + suh, suh,
              set(map + suh, "\"" + second + "\"")),
      OfIndex("TensorInTwoShards", Code::kMismatch, second, "", suh,
              [=](Writer& w) {
                TensorSpec copy = w.Tensor(suh);
                copy.bytes[0] ^= 1;
                w.PutInShard(1, copy);
              }),
      OfIndex("TensorInAShardAlone", Code::kMismatch, second, "", "x.weight",
              [](Writer& w) {
                w.PutInShard(1, {.name = "x.weight", .dtype = DType::kF16, .shape = {2}});
              }),
      OfIndex("TotalSizeOfAnotherPack", Code::kMismatch, kIndex, "/metadata/total_size", "",
              set("/metadata/total_size", "1")),
      OfIndex("TotalSizeNegative", Code::kOutOfRange, kIndex, "/metadata/total_size", "",
              set("/metadata/total_size", "-1")),
      OfIndex("IndexBroken", Code::kMalformed, kIndex, "", "",
              [](Writer& w) { w.SetDocument(kIndex, "{"); }),
      OfIndex("NoWeightMap", Code::kMalformed, kIndex, "/weight_map", "",
              [](Writer& w) { w.EraseIn(kIndex, "/weight_map"); }),
      OfIndex("WeightMapEmpty", Code::kMalformed, kIndex, "/weight_map", "",
              set("/weight_map", "{}")),
      OfIndex("WeightMapAsList", Code::kMalformed, kIndex, "/weight_map", "",
              set("/weight_map", "[]")),
      OfIndex(OfIndex("ShardsWithoutTheirIndex", Code::kNotFound, kIndex, "", "", {}),
              Delete(kIndex)),
      OfIndex(OfIndex("AShardTheIndexDoesNotName", Code::kMismatch,
                      "model-00003-of-00003.safetensors", "", "", {}),
              Copy(first, "model-00003-of-00003.safetensors")),
      OfIndex(OfIndex("ASingleFileBesideTheIndex", Code::kMismatch, kFile, "", "", {}),
              Copy(first, kFile)),
  };
  // The absent shard is reported with the first tensor the index puts there.
  faults[1].pointer = faults[0].pointer;
  faults[1].tensor = faults[0].tensor;
  int number = 0;
  for (const char* name :
       {"../model.safetensors", "/etc/model.safetensors", "sub/model.safetensors",
        "sub\\\\model.safetensors", "..safetensors", ".safetensors", "", "model.bin",
        "C:model.safetensors", "a\\u0000.safetensors"}) {
    faults.push_back(OfIndex("FileNameThatIsNoPlainName" + std::to_string(number++),
                             Code::kMalformed, kIndex, map + suh, suh,
                             set(map + suh, "\"" + std::string(name) + "\"")));
  }
  faults.push_back(
      OfIndex("FileNameAsNumber", Code::kMalformed, kIndex, map + suh, "", set(map + suh, "2")));
  faults.push_back(
      OfIndex("FileNameNull", Code::kMalformed, kIndex, map + suh, suh, set(map + suh, "null")));
  return faults;
}

class FormatRejectFiles : public testing::TestWithParam<Fault> {};

TEST_P(FormatRejectFiles, RefusesAfterItsControl) { ExpectRefused(GetParam()); }

std::string NameOf(const testing::TestParamInfo<Fault>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Header, FormatRejectFiles, testing::ValuesIn(HeaderFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Folder, FormatRejectFiles, testing::ValuesIn(FolderFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Index, FormatRejectFiles, testing::ValuesIn(IndexFaults()), NameOf);

TEST(FormatRejectFiles, SaysWhichOfThreeCausesATensorIsMissingFor) {
  const std::string folder = TestFolder();
  const std::string suh = kQkv + "suh";
  std::vector<std::string> messages;
  for (int cause = 0; cause < 3; ++cause) {
    CheckpointWriter writer;
    writer.Shard(2);
    if (cause == 0) writer.EraseIn(kIndex, "/weight_map/" + suh);
    if (cause == 1) writer.Remove(suh);
    ASSERT_TRUE(writer.Write(folder).has_value());
    if (cause == 2) fs::remove(folder + "/model-00001-of-00002.safetensors");
    const Verdict verdict = Judge(folder);
    ASSERT_TRUE(verdict.error.has_value());
    messages.push_back(verdict.error->message);
  }
  EXPECT_NE(messages[0], messages[1]);
  EXPECT_NE(messages[1], messages[2]);
  EXPECT_NE(messages[0], messages[2]);
}

}  // namespace
}  // namespace hallmark
