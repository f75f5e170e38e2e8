// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/text/byte_alphabet.h"
#include "engine/text/json_node.h"
#include "engine/text/normalizer.h"
#include "engine/text/pre_tokenizer.h"

namespace hallmark {
namespace {

constexpr std::string_view kByteLevel = "ByteLevel";

// spelling -> id; the strings live in the document.
using Vocabulary = std::unordered_map<std::string_view, int32_t>;

// ByteLevel as decoder or post-processor: its switches concern offsets and prefix spaces of other
// steps, none of them changes ids or text here.
Status CheckByteLevelWithoutEffect(const JsonNode& node) {
  TRY(node.MemberIs("type", kByteLevel));
  TRY(node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  for (const std::string_view key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
    if (node.Has(key)) TRY(TRY(node.Member(key)).Bool());
  }
  return {};
}

Status CheckNormalizer(const JsonNode& node) {
  TRY(node.MemberIs("type", "NFC"));
  return node.OnlyMembers({"type"});
}

// The pattern is compared, not compiled: a pattern from a file could take exponential time, and
// PCRE2 reads some of Oniguruma's syntax differently.
Status CheckSplit(const JsonNode& node) {
  TRY(node.MemberIs("type", "Split"));
  TRY(node.OnlyMembers({"type", "pattern", "behavior", "invert"}));
  TRY(node.MemberIs("behavior", "Isolated"));
  TRY(node.FlagIs("invert", false));
  const JsonNode pattern = TRY(node.Member("pattern"));
  TRY(pattern.OnlyMembers({"Regex"}));
  const JsonNode regex = TRY(pattern.Member("Regex"));
  if (TRY(regex.Text()) != kQwen35SplitPattern) {
    return Fail(Code::kUnsupported,
                "the split pattern is not Qwen3.5's, the only one that is supported",
                regex.where());
  }
  return {};
}

Status CheckPreTokenizer(const JsonNode& node) {
  TRY(node.MemberIs("type", "Sequence"));
  TRY(node.OnlyMembers({"type", "pretokenizers"}));
  const JsonNode steps = TRY(node.Member("pretokenizers"));
  TRY(steps.MustBeArray());
  if (steps.value().size() != 2) {
    return Fail(Code::kUnsupported,
                "found " + std::to_string(steps.value().size()) +
                    " steps, only Split followed by ByteLevel is supported",
                steps.where());
  }
  TRY(CheckSplit(TRY(steps.Item(0))));
  const JsonNode bytes = TRY(steps.Item(1));
  TRY(CheckByteLevelWithoutEffect(bytes));
  TRY(bytes.FlagIs("add_prefix_space", false));
  return bytes.FlagIs("use_regex", false);
}

// Each of these switches changes ids when set. With every byte in the vocabulary there is nothing
// unknown to fuse or to fall back from, but a file that asks for it is another family's.
Status CheckModelSwitches(const JsonNode& model) {
  TRY(model.MemberIs("type", "BPE"));
  TRY(model.OnlyMembers({"type", "dropout", "unk_token", "continuing_subword_prefix",
                         "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                         "vocab", "merges"}));
  for (const std::string_view key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    TRY(model.MemberUnset(key));
  }
  for (const std::string_view key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (model.Has(key)) TRY(model.FlagIs(key, false));
  }
  return {};
}

Status CheckComponents(const JsonNode& root) {
  TRY(root.OnlyMembers({"version", "truncation", "padding", "added_tokens", "normalizer",
                        "pre_tokenizer", "post_processor", "decoder", "model"}));
  TRY(root.MemberIs("version", "1.0"));
  TRY(root.MemberUnset("truncation"));
  TRY(root.MemberUnset("padding"));
  TRY(CheckNormalizer(TRY(root.Member("normalizer"))));
  TRY(CheckPreTokenizer(TRY(root.Member("pre_tokenizer"))));
  if (root.Has("post_processor")) {
    const JsonNode post = TRY(root.Member("post_processor"));
    if (!post.value().is_null()) TRY(CheckByteLevelWithoutEffect(post));
  }
  TRY(CheckByteLevelWithoutEffect(TRY(root.Member("decoder"))));
  return CheckModelSwitches(TRY(root.Member("model")));
}

Result<int32_t> ReadId(const JsonNode& node) {
  const int64_t id = TRY(node.Integer());
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
    return Fail(Code::kOutOfRange, "the id " + std::to_string(id) + " does not fit 31 bits",
                node.where());
  }
  return static_cast<int32_t>(id);
}

// Keys are unique: the JSON reader refuses duplicates.
Result<Vocabulary> ReadVocabulary(const JsonNode& node, const std::string& file) {
  TRY(node.MustBeObject());
  Vocabulary vocabulary;
  vocabulary.reserve(node.value().size());
  for (auto item = node.value().begin(); item != node.value().end(); ++item) {
    int32_t id = -1;
    if (item->is_number_unsigned() &&
        item->get<uint64_t>() <= uint64_t{std::numeric_limits<int32_t>::max()}) {
      id = static_cast<int32_t>(item->get<uint64_t>());
    } else {
      id = TRY(ReadId(JsonNode(*item, file, node.WhereOf(item.key()).pointer)));
    }
    vocabulary.emplace(item.key(), id);
  }
  return vocabulary;
}

// Stripping and whole-word matching would need the reference's notions of space and word; no
// Qwen3.5 tokenizer uses them.
Result<AddedToken> ReadAddedToken(const JsonNode& node) {
  TRY(node.OnlyMembers(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  token.id = TRY(ReadId(TRY(node.Member("id"))));
  token.content = TRY(TRY(node.Member("content")).Text());
  for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) {
    TRY(node.FlagIs(key, false));
  }
  token.normalized = TRY(TRY(node.Member("normalized")).Bool());
  token.special = TRY(TRY(node.Member("special")).Bool());
  if (token.content.empty()) {
    return Fail(Code::kMalformed, "an added token has no content", node.WhereOf("content"));
  }
  if (token.normalized) token.content = TRY(NormalizeNfc(token.content));
  return token;
}

Result<std::vector<AddedToken>> ReadAddedTokens(const JsonNode& node) {
  TRY(node.MustBeArray());
  std::vector<AddedToken> tokens;
  std::set<std::string> seen;
  for (size_t i = 0; i < node.value().size(); ++i) {
    const JsonNode item = TRY(node.Item(i));
    tokens.push_back(TRY(ReadAddedToken(item)));
    if (!seen.insert(tokens.back().content).second) {
      return Fail(Code::kMalformed, "two added tokens have the same content",
                  item.WhereOf("content"));
    }
  }
  return tokens;
}

// The two spellings of one merge: "a b" and ["a", "b"]. A byte-level spelling holds no blank.
bool ReadMergePair(const Json& value, std::string_view* left, std::string_view* right) {
  if (const auto* text = value.get_ptr<const std::string*>()) {
    const size_t blank = text->find(' ');
    if (blank == std::string::npos || text->find(' ', blank + 1) != std::string::npos) return false;
    *left = std::string_view(*text).substr(0, blank);
    *right = std::string_view(*text).substr(blank + 1);
    return true;
  }
  if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !value[1].is_string()) {
    return false;
  }
  *left = value[0].get_ref<const std::string&>();
  *right = value[1].get_ref<const std::string&>();
  return true;
}

Result<std::vector<MergeRule>> ReadMerges(const JsonNode& node, const Vocabulary& vocabulary) {
  TRY(node.MustBeArray());
  const Json& items = node.value();
  std::vector<MergeRule> merges;
  merges.reserve(items.size());
  // Both ids and the index. A pair listed twice would have two ranks, and readers differ on which
  // one counts.
  std::vector<std::pair<uint64_t, size_t>> pairs;
  pairs.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    std::string_view left;
    std::string_view right;
    if (items[i].type() != items[0].type() || !ReadMergePair(items[i], &left, &right)) {
      return Fail(Code::kMalformed,
                  "a merge is neither \"a b\" nor [\"a\", \"b\"], or the two are mixed",
                  node.WhereOf(i));
    }
    const auto id_of = [&vocabulary](std::string_view spelling) {
      const auto found = vocabulary.find(spelling);
      return found == vocabulary.end() ? -1 : found->second;
    };
    const std::string joined = std::string(left) + std::string(right);
    const MergeRule rule{id_of(left), id_of(right), id_of(joined)};
    for (const auto& [id, spelling] : {std::pair<int32_t, std::string_view>{rule.left, left},
                                       {rule.right, right},
                                       {rule.result, joined}}) {
      if (id >= 0) continue;
      return Fail(Code::kMalformed,
                  "the merge needs \"" + std::string(spelling) + "\", which is not a token",
                  node.WhereOf(i));
    }
    merges.push_back(rule);
    pairs.emplace_back((static_cast<uint64_t>(rule.left) << 32) | static_cast<uint32_t>(rule.right),
                       i);
  }
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 1; i < pairs.size(); ++i) {
    if (pairs[i].first != pairs[i - 1].first) continue;
    return Fail(Code::kMalformed, "the merge repeats number " + std::to_string(pairs[i - 1].second),
                node.WhereOf(pairs[i].second));
  }
  return merges;
}

// Gives each id its bytes; ids must be 0..n-1, each taken once.
class IdTable {
 public:
  explicit IdTable(size_t tokens) : bytes_(tokens), taken_(tokens, false) {}

  // `where` is asked only on a fault: a vocabulary has too many entries to build a pointer for
  // each.
  template <typename Where>
  Status Set(int32_t id, std::string bytes, const Where& where) {
    if (static_cast<size_t>(id) >= bytes_.size()) {
      return Fail(Code::kOutOfRange,
                  "the id " + std::to_string(id) + " is past the last, " +
                      std::to_string(bytes_.size()) + " tokens have the ids from 0",
                  where());
    }
    if (taken_[id]) {
      return Fail(Code::kMalformed, "the id " + std::to_string(id) + " is used twice", where());
    }
    taken_[id] = true;
    bytes_[id] = std::move(bytes);
    return {};
  }
  std::vector<std::string> Take() { return std::move(bytes_); }

 private:
  std::vector<std::string> bytes_;
  std::vector<bool> taken_;
};

Result<std::vector<std::string>> AssignIds(const Vocabulary& vocabulary, const JsonNode& vocab_node,
                                           const std::vector<AddedToken>& added,
                                           const JsonNode& added_node) {
  // An added token may stand in the vocabulary too; it is then one token.
  std::unordered_map<std::string_view, int32_t> added_ids;
  size_t tokens = vocabulary.size();
  for (size_t i = 0; i < added.size(); ++i) {
    added_ids.emplace(added[i].content, added[i].id);
    const auto found = vocabulary.find(added[i].content);
    if (found == vocabulary.end()) {
      ++tokens;
    } else if (found->second != added[i].id) {
      return Fail(Code::kMismatch,
                  "the added token has the id " + std::to_string(added[i].id) +
                      ", the vocabulary gives it " + std::to_string(found->second),
                  added_node.WhereOf(i));
    }
  }
  IdTable table(tokens);
  for (auto item = vocab_node.value().begin(); item != vocab_node.value().end(); ++item) {
    if (added_ids.contains(item.key())) continue;
    std::optional<std::string> bytes = UnspellBytes(item.key());
    if (!bytes.has_value() || bytes->empty()) {
      return Fail(Code::kMalformed, "a token is empty or not spelled in the byte alphabet",
                  vocab_node.WhereOf(item.key()));
    }
    TRY(table.Set(vocabulary.at(item.key()), *std::move(bytes),
                  [&] { return vocab_node.WhereOf(item.key()); }));
  }
  for (size_t i = 0; i < added.size(); ++i) {
    TRY(table.Set(added[i].id, added[i].content, [&] { return added_node.WhereOf(i); }));
  }
  return table.Take();
}

}  // namespace

Result<TokenizerTables> ReadTokenizerTables(const Json& document, const std::string& file) {
  const JsonNode root(document, file);
  TRY(CheckComponents(root));
  const JsonNode model = TRY(root.Member("model"));
  const JsonNode vocab_node = TRY(model.Member("vocab"));
  const JsonNode added_node = TRY(root.Member("added_tokens"));
  const Vocabulary vocabulary = TRY(ReadVocabulary(vocab_node, file));
  TokenizerTables tables;
  tables.added = TRY(ReadAddedTokens(added_node));
  tables.token_bytes = TRY(AssignIds(vocabulary, vocab_node, tables.added, added_node));
  // Without all 256 some text could not be encoded, and the reference would drop it in silence.
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = SpellByte(static_cast<uint8_t>(byte));
    const auto found = vocabulary.find(spelling);
    if (found == vocabulary.end()) {
      return Fail(Code::kMalformed,
                  "the byte " + std::to_string(byte) + " (\"" + spelling + "\") has no token",
                  vocab_node.where());
    }
    tables.byte_ids[byte] = found->second;
  }
  tables.merges = TRY(ReadMerges(TRY(model.Member("merges")), vocabulary));
  return tables;
}

}  // namespace hallmark
