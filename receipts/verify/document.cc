// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/document.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hallmark::verify {
namespace {

constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr char kPredicateType[] = "urn:hallmark:receipt/run/v1";

// The offset of the first byte that belongs to no well-formed UTF-8 sequence.
std::optional<size_t> FirstBadUtf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = bytes[i];
    size_t length = 1;
    uint32_t least = 0;
    uint32_t point = lead;
    if (lead >= 0xF0 && lead < 0xF8) {
      length = 4, least = 0x10000, point = lead & 0x07;
    } else if (lead >= 0xE0) {
      length = 3, least = 0x800, point = lead & 0x0F;
    } else if (lead >= 0xC0) {
      length = 2, least = 0x80, point = lead & 0x1F;
    } else if (lead >= 0x80) {
      return i;
    }
    if (lead >= 0xF8 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((bytes[i + k] & 0xC0) != 0x80) return i;
      point = point << 6 | (bytes[i + k] & 0x3F);
    }
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return i;
    i += length;
  }
  return std::nullopt;
}

// How deep brackets nest outside strings, whatever else the text is.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

std::string AtByte(size_t byte) { return "byte " + std::to_string(byte); }

// Whether the bytes are one line of text that may be parsed at all.
bool CheckBytes(std::string_view bytes, Findings& findings) {
  if (bytes.size() > kMaxReceiptBytes) {
    findings.Add("too-large", "", "at most " + std::to_string(kMaxReceiptBytes) + " bytes",
                 std::to_string(bytes.size()));
    return false;
  }
  if (bytes.empty()) {
    findings.Add("empty", "", "a receipt", "no bytes");
    return false;
  }
  if (const auto bad = FirstBadUtf8(bytes)) {
    findings.Add("not-utf8", "", "UTF-8", AtByte(*bad));
    return false;
  }
  const size_t newline = bytes.find('\n');
  if (newline == std::string_view::npos) {
    findings.Add("no-final-newline", "", "one line that ends in a newline", "no newline");
    return false;
  }
  if (newline + 1 != bytes.size()) {
    findings.Add("trailing-bytes", "", "nothing after the first line",
                 std::to_string(bytes.size() - newline - 1) + " bytes");
    return false;
  }
  const int depth = Depth(bytes);
  if (depth > kMaxReceiptDepth) {
    findings.Add("too-deep", "", "at most " + std::to_string(kMaxReceiptDepth) + " levels",
                 std::to_string(depth));
    return false;
  }
  return true;
}

bool IsText(const Json& statement, const char* member, std::string_view text) {
  const auto found = statement.find(member);
  return found != statement.end() && found->is_string() &&
         found->get_ref<const std::string&>() == text;
}

}  // namespace

std::optional<Json> ReadReceipt(const Knowledge& knowledge, std::string_view bytes,
                                Findings& findings) {
  if (!CheckBytes(bytes, findings)) return std::nullopt;
  Result<Json> parsed = ParseJson(bytes, "");
  if (!parsed.has_value()) {
    const Error& error = parsed.error();
    // Depth was judged above, so a pointer without an offset is a key that came twice.
    if (!error.where.byte && !error.where.pointer.empty()) {
      findings.Add("duplicate-key", error.where.pointer, "each member once", "a second one");
    } else {
      findings.Add("not-json", "", "JSON",
                   error.where.byte ? AtByte(*error.where.byte) : ShownText(error.message));
    }
    return std::nullopt;
  }
  Json statement = *std::move(parsed);
  const std::string canonical = statement.dump() + "\n";
  if (canonical != bytes) {
    const auto [one, other] =
        std::mismatch(canonical.begin(), canonical.end(), bytes.begin(), bytes.end());
    findings.Add("not-canonical", "", "members sorted, no space, shortest numbers",
                 AtByte(static_cast<size_t>(other - bytes.begin())));
    return std::nullopt;
  }
  if (!statement.is_object()) {
    findings.Add("wrong-type", "", "object", Shown(statement));
    return std::nullopt;
  }
  if (!IsText(statement, "_type", kStatementType)) {
    findings.Add("unknown-statement-type", "/_type", kStatementType,
                 statement.contains("_type") ? Shown(statement["_type"]) : "nothing");
    return std::nullopt;
  }
  if (!IsText(statement, "predicateType", kPredicateType)) {
    findings.Add(
        "unknown-predicate-type", "/predicateType", kPredicateType,
        statement.contains("predicateType") ? Shown(statement["predicateType"]) : "nothing");
    return std::nullopt;
  }
  const size_t before = findings.total();
  knowledge.receipt_schema.Check(statement, findings);
  if (findings.total() != before) return std::nullopt;
  return statement;
}

}  // namespace hallmark::verify
