// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/mapped_file.h"

namespace hallmark {
namespace {

// Thrown from the parser callback and caught in ParseJson: nlohmann offers no other way to stop.
struct Refusal {
  Code code = Code::kMalformed;
  std::string message;
  std::string pointer;
};

std::string EscapePointer(const std::string& key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

using DomParser = nlohmann::detail::json_sax_dom_parser<Json>;

// Builds the value, and tracks the keys seen in each open object and where in each open array the
// reader stands. Not the library's parser callback: that one looks through the whole parent at the
// end of each object, so that a list of n objects takes n * n steps.
class GuardedParser : public DomParser {
 public:
  explicit GuardedParser(Json& value) : DomParser(value) {}

  bool null() { return Count() && DomParser::null(); }
  bool boolean(bool value) { return Count() && DomParser::boolean(value); }
  bool number_integer(int64_t value) { return Count() && DomParser::number_integer(value); }
  bool number_unsigned(uint64_t value) { return Count() && DomParser::number_unsigned(value); }
  bool number_float(double value, const std::string& text) {
    return Count() && DomParser::number_float(value, text);
  }
  bool string(std::string& value) { return Count() && DomParser::string(value); }

  bool start_object(size_t size) { return Open(false) && DomParser::start_object(size); }
  bool start_array(size_t size) { return Open(true) && DomParser::start_array(size); }
  bool end_object() {
    open_.pop_back();
    return DomParser::end_object();
  }
  bool end_array() {
    open_.pop_back();
    return DomParser::end_array();
  }
  bool key(std::string& value) {
    Bound();
    Level& level = open_.back();
    level.place = value;
    if (!level.seen.insert(value).second) {
      throw Refusal{Code::kMalformed, "the key \"" + value + "\" appears twice", Pointer()};
    }
    return DomParser::key(value);
  }

 private:
  struct Level {
    bool array = false;
    size_t items = 0;                  // of an array, so far
    std::set<std::string> seen;        // keys of an object
    std::optional<std::string> place;  // the latest key or index
  };

  void Bound() {
    if (++values_ > kMaxJsonValues) {
      throw Refusal{Code::kOutOfRange,
                    "more than " + std::to_string(kMaxJsonValues) + " values and keys", Pointer()};
    }
  }
  bool Count() {
    if (!open_.empty() && open_.back().array) {
      open_.back().place = std::to_string(open_.back().items++);
    }
    Bound();
    return true;
  }
  bool Open(bool array) {
    Count();
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      throw Refusal{Code::kMalformed,
                    "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels", Pointer()};
    }
    open_.push_back({.array = array});
    return true;
  }
  std::string Pointer() const {
    std::string text;
    for (const Level& level : open_) {
      if (level.place) text += "/" + EscapePointer(*level.place);
    }
    return text;
  }

  std::vector<Level> open_;
  size_t values_ = 0;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, const std::string& file) {
  // The parser passes over a byte order mark, and takes a NUL between tokens for the text's end.
  if (text.starts_with("\xef\xbb\xbf")) {
    return Fail(Code::kMalformed, "the text begins with a byte order mark",
                {.file = file, .byte = 0});
  }
  try {
    Json parsed;
    GuardedParser guarded(parsed);
    Json::sax_parse(text.begin(), text.end(), &guarded);  // throws what is wrong
    const size_t nul = text.find('\0');
    if (nul == std::string_view::npos) return parsed;
    return Fail(Code::kMalformed, "NUL is no JSON", {.file = file, .byte = nul});
  } catch (const Refusal& refusal) {
    return Fail(refusal.code, refusal.message, {.file = file, .pointer = refusal.pointer});
  } catch (const Json::parse_error& error) {
    // The parser counts from one and points just past the offending byte.
    const uint64_t byte = error.byte > 0 ? error.byte - 1 : 0;
    return Fail(Code::kMalformed, "not valid JSON", {.file = file, .byte = byte});
  } catch (const Json::exception& error) {
    return Fail(Code::kMalformed, std::string("not valid JSON: ") + error.what(), {.file = file});
  }
}

Result<Json> ReadJsonFile(const std::string& path, size_t max_bytes) {
  const MappedFile file = TRY(MappedFile::Open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return Fail(Code::kOutOfRange,
                "the file has " + std::to_string(bytes.size()) + " bytes, at most " +
                    std::to_string(max_bytes) + " are read",
                {.file = path});
  }
  auto value = ParseJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  TRY(file.Intact());  // before a fault that zeros may have made
  return value;
}

std::string CanonicalJson(const Json& value) { return value.dump(2) + "\n"; }

}  // namespace hallmark
