// SPDX-License-Identifier: Apache-2.0
#include "engine/format/safetensors.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "conformance/harness/sanitizer.h"

namespace hallmark {
namespace {

// Sanitizers slow the reader several times over; the bound is for the program as it is shipped.
constexpr double kParseSeconds = kAddressSanitizer ? 10.0 : 1.0;

std::string FileOf(const std::string& header, size_t data_bytes) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  }
  return text + header + std::string(data_bytes, '\x07');
}

Result<SafetensorsTable> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "x.safetensors");
}

std::string Record(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// "1,1,...,1".
std::string Ones(int count) {
  std::string text = "1";
  for (int i = 1; i < count; ++i) text += ",1";
  return text;
}

TEST(SafetensorsReader, ReadsTensorsSortedByNameAtOddOffsets) {
  const std::string header =
      "{" + Record("b", "F16", "[2,1]", "[1,5]") + "," + Record("a", "U8", "[1]", "[0,1]") + "," +
      Record("s", "I32", "[]", "[5,9]") + "," + Record("z", "F32", "[0,7]", "[5,5]") +
      ",\"__metadata__\":{\"format\":\"pt\"}}";
  const std::string file = FileOf(header, 9);
  const auto table = Parse(file);
  ASSERT_TRUE(table.has_value()) << table.error().ToString();
  ASSERT_EQ(table->tensors.size(), 4u);
  EXPECT_EQ(table->tensors[0].name, "a");
  const TensorView* b = FindTensor(table->tensors, "b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::kF16);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(b->bytes.size(), 4u);
  EXPECT_EQ(b->file_offset, 8 + header.size() + 1);
  EXPECT_EQ(reinterpret_cast<const char*>(b->bytes.data()), file.data() + b->file_offset);
  EXPECT_TRUE(FindTensor(table->tensors, "s")->shape.empty());
  EXPECT_EQ(FindTensor(table->tensors, "z")->elements(), 0);
  EXPECT_EQ(FindTensor(table->tensors, "c"), nullptr);
  EXPECT_EQ(table->metadata.at("format"), "pt");
}

TEST(SafetensorsReader, AcceptsLegalSpellings) {
  for (const std::string& header : {
           std::string("{}"),
           std::string("{}        "),
           std::string("{ \n\t\"__metadata__\" : { } \r}"),
           std::string(R"({"__metadata__":{"a":"1","b":"\u0041"}})"),
           "{ " + Record("a", "U8", "[ 0 , 3 ]", "[ 0 , 0 ]") + " }",
           "{" + Record("", "BOOL", "[0]", "[0,0]") + "}",
           std::string(R"({"a":{"data_offsets":[0,0],"\u0064type":"U8","shape":[0]}})"),
       }) {
    const std::string file = FileOf(header, 0);
    const auto table = Parse(file);
    EXPECT_TRUE(table.has_value()) << header << table.error().ToString();
  }
}

TEST(SafetensorsReader, ReadsHundredThousandEmptyTensorsWithinASecond) {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i) {
    header += (i == 0 ? "" : ",") + Record("t" + std::to_string(i), "F16", "[0]", "[0,0]");
  }
  const std::string file = FileOf(header + "}", 0);
  const std::clock_t start = std::clock();
  const auto table = Parse(file);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->tensors.size(), 100000u);
  // Processor time: a busy machine is not the reader's fault.
  EXPECT_LT(seconds, kParseSeconds);
}

struct Refusal {
  std::string what;
  std::string header;
  size_t data_bytes;
  Code code;
  uint64_t byte;  // of the file
  std::string tensor;
};

TEST(SafetensorsReader, RefusesEachFaultWithItsPlace) {
  const std::string ok = Record("a", "U8", "[1]", "[0,1]");
  const Refusal cases[] = {
      {"not an object", "[1]", 0, Code::kMalformed, 8, ""},
      {"leading blank", " {}", 0, Code::kMalformed, 8, ""},
      {"NUL padding", std::string("{}\0\0", 4), 0, Code::kMalformed, 10, ""},
      {"text after the object", "{}x", 0, Code::kMalformed, 10, ""},
      {"second object", R"({},"__metadata__":{})", 0, Code::kMalformed, 10, ""},
      {"unfinished", "{\"a\"", 0, Code::kMalformed, 12, ""},
      {"trailing comma", "{" + ok + ",}", 1, Code::kMalformed, 8 + 2 + ok.size(), ""},
      {"record is a list", R"({"a":[]})", 0, Code::kMalformed, 13, "a"},
      {"record is empty", R"({"a":{}})", 0, Code::kMalformed, 14, "a"},
      {"no dtype", R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0, Code::kMalformed, 9, "a"},
      {"no shape", R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, Code::kMalformed, 9, "a"},
      {"no offsets", R"({"a":{"dtype":"U8","shape":[0]}})", 0, Code::kMalformed, 9, "a"},
      {"dtype twice", R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, Code::kMalformed, 27, "a"},
      {"unknown field", R"({"a":{"stride":[1]}})", 0, Code::kUnsupported, 14, "a"},
      {"unknown dtype", R"({"a":{"dtype":"F4"}})", 0, Code::kUnsupported, 22, "a"},
      {"dtype is a number", R"({"a":{"dtype":5}})", 0, Code::kMalformed, 22, "a"},
      {"shape is a number", R"({"a":{"shape":5}})", 0, Code::kMalformed, 22, "a"},
      {"negative extent", R"({"a":{"shape":[-1]}})", 0, Code::kMalformed, 23, "a"},
      {"float extent", R"({"a":{"shape":[1.0]}})", 0, Code::kMalformed, 23, "a"},
      {"exponent extent", R"({"a":{"shape":[1e3]}})", 0, Code::kMalformed, 23, "a"},
      {"leading zero", R"({"a":{"shape":[01]}})", 0, Code::kMalformed, 23, "a"},
      {"boolean extent", R"({"a":{"shape":[true]}})", 0, Code::kMalformed, 23, "a"},
      {"text extent", R"({"a":{"shape":["1"]}})", 0, Code::kMalformed, 23, "a"},
      {"deep extent", R"({"a":{"shape":[[1]]}})", 0, Code::kMalformed, 23, "a"},
      {"extent above 63 bits", R"({"a":{"shape":[9223372036854775808]}})", 0, Code::kMalformed, 23,
       "a"},
      {"extent above 64 bits", R"({"a":{"shape":[99999999999999999999]}})", 0, Code::kMalformed, 23,
       "a"},
      {"product overflow", R"({"a":{"shape":[4294967296,4294967296,0]}})", 0, Code::kMalformed, 34,
       "a"},
      {"65 extents", "{\"a\":{\"shape\":[" + Ones(65) + "]}}", 0, Code::kUnsupported, 151, "a"},
      {"one offset", R"({"a":{"data_offsets":[0]}})", 0, Code::kMalformed, 32, "a"},
      {"three offsets", R"({"a":{"data_offsets":[0,0,0]}})", 0, Code::kMalformed, 34, "a"},
      {"negative offset", R"({"a":{"data_offsets":[-16,0]}})", 0, Code::kMalformed, 30, "a"},
      {"begin after end", "{" + Record("a", "U8", "[0]", "[1,0]") + "}", 1, Code::kMalformed, 54,
       "a"},
      {"span is not the size", "{" + Record("a", "U8", "[2]", "[0,1]") + "}", 1, Code::kMalformed,
       54, "a"},
      {"span is larger than the size", "{" + Record("a", "U8", "[1]", "[0,2]") + "}", 2,
       Code::kMalformed, 54, "a"},
      {"begin after end by the size that wraps around",
       "{" + Record("a", "F64", "[2305843009213693950]", "[16,0]") + "}", 16, Code::kMalformed, 73,
       "a"},
      {"bytes overflow", "{" + Record("a", "F64", "[4611686018427387904]", "[0,0]") + "}", 0,
       Code::kMalformed, 9, "a"},
      {"far beyond the file",
       "{" + Record("a", "U8", "[16]", "[1099511627776,1099511627792]") + "}", 16, Code::kMalformed,
       9, "a"},
      {"end of file inside", "{" + Record("a", "U8", "[4]", "[0,4]") + "}", 3, Code::kMalformed, 9,
       "a"},
      {"metadata is a list", R"({"__metadata__":[]})", 0, Code::kMalformed, 24, ""},
      {"metadata value is a number", R"({"__metadata__":{"a":1}})", 0, Code::kMalformed, 29, ""},
      {"metadata is null", R"({"__metadata__":null})", 0, Code::kMalformed, 24, ""},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, Code::kMalformed, 27, ""},
      {"metadata key twice", R"({"__metadata__":{"a":"","\u0061":""}})", 0, Code::kMalformed, 32,
       "a"},
      {"not UTF-8", "{\"a\xff\":{}}", 0, Code::kMalformed, 11, ""},
  };
  for (const Refusal& c : cases) {
    const std::string file = FileOf(c.header, c.data_bytes);
    const auto table = Parse(file);
    ASSERT_FALSE(table.has_value()) << c.what;
    const Locator want{.file = "x.safetensors", .byte = c.byte, .tensor = c.tensor};
    EXPECT_EQ(table.error().code, c.code) << c.what << ": " << table.error().ToString();
    EXPECT_TRUE(table.error().where == want) << c.what << ": " << table.error().ToString();
  }
}

TEST(SafetensorsReader, TakesShapesOfUpTo64Extents) {
  const std::string record = Record("a", "U8", "[" + Ones(64) + "]", "[0,1]");
  const std::string file = FileOf("{" + record + "}", 1);
  const auto table = Parse(file);
  ASSERT_TRUE(table.has_value()) << table.error().ToString();
  EXPECT_EQ(table->tensors.front().shape.size(), 64u);
}

TEST(SafetensorsReader, RefusesHolesOverlapsAndTrailingBytes) {
  const auto file = [](const std::string& second, size_t data_bytes) {
    return FileOf("{" + Record("a", "U8", "[4]", "[0,4]") + "," + second + "}", data_bytes);
  };
  EXPECT_TRUE(Parse(file(Record("b", "U8", "[2]", "[4,6]"), 6)).has_value());
  const std::string cases[] = {
      file(Record("b", "U8", "[2]", "[5,7]"), 7),  // hole
      file(Record("b", "U8", "[2]", "[3,5]"), 5),  // overlap
      file(Record("b", "U8", "[4]", "[0,4]"), 4),  // the same bytes twice
      file(Record("b", "U8", "[1]", "[1,2]"), 4),  // inside
      file(Record("b", "U8", "[0]", "[2,2]"), 4),  // empty, inside
      file(Record("b", "U8", "[2]", "[4,6]"), 7),  // trailing byte
      file(Record("a", "U8", "[2]", "[4,6]"), 6),  // name twice
      file(Record("\\u0061", "U8", "[2]", "[4,6]"), 6),
      FileOf("{" + Record("a", "U8", "[1]", "[1,2]") + "}", 2),  // hole at the start
      FileOf("{}", 1),
  };
  for (const std::string& text : cases) {
    const auto table = Parse(text);
    ASSERT_FALSE(table.has_value()) << text;
    EXPECT_EQ(table.error().code, Code::kMalformed);
    EXPECT_TRUE(table.error().where.byte.has_value());
  }
}

TEST(SafetensorsReader, RefusesBadLengths) {
  for (size_t size = 0; size < 8; ++size) {
    const auto table = Parse(std::string(size, '\0'));
    ASSERT_FALSE(table.has_value());
    EXPECT_EQ(table.error().where.byte, size);
  }
  const auto code = [](uint64_t length) {
    std::string file(12, ' ');
    for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i));
    const auto table = Parse(file);
    EXPECT_FALSE(table.has_value());
    return table.error().code;
  };
  EXPECT_EQ(code(0), Code::kMalformed);
  EXPECT_EQ(code(5), Code::kMalformed);
  EXPECT_EQ(code(100'000'000), Code::kMalformed);
  EXPECT_EQ(code(100'000'001), Code::kOutOfRange);
  EXPECT_EQ(code(~uint64_t{0}), Code::kOutOfRange);
}

TEST(SafetensorsFile, OpensAndOutlivesAMove) {
  const std::string path = testing::TempDir() + "/safetensors_test.safetensors";
  std::ofstream(path, std::ios::binary) << FileOf("{" + Record("a", "U8", "[3]", "[0,3]") + "}", 3);
  auto opened = SafetensorsFile::Open(path);
  ASSERT_TRUE(opened.has_value());
  const SafetensorsFile file = std::move(*opened);
  const TensorView* a = file.Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes[2], std::byte{7});
  EXPECT_EQ(a->file, path);
  EXPECT_EQ(SafetensorsFile::Open(path + ".absent").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace hallmark
