// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/text_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "engine/format/generation_config.h"
#include "engine/format/json_view.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

constexpr const char* kGeneration = "generation_config.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kTemplate = "chat_template.jinja";
constexpr const char* kReadme = "README.md";
constexpr std::string_view kTurnEnd = "<|im_end|>";

// Settings that change replies and that this engine's sampler has not, with the number that stands
// for none. Nothing, false, and empty lists and texts stand for none as well.
struct IgnoredSetting {
  const char* key;
  double none = 0;
};
constexpr IgnoredSetting kIgnored[] = {{"repetition_penalty", 1},
                                       {"presence_penalty"},
                                       {"frequency_penalty"},
                                       {"no_repeat_ngram_size"},
                                       {"encoder_repetition_penalty", 1},
                                       {"typical_p", 1},
                                       {"epsilon_cutoff"},
                                       {"eta_cutoff"},
                                       {"penalty_alpha"},
                                       {"guidance_scale", 1},
                                       {"num_beams", 1},
                                       {"num_beam_groups", 1},
                                       {"min_length"},
                                       {"min_new_tokens"},
                                       {"exponential_decay_length_penalty"},
                                       {"bad_words_ids"},
                                       {"force_words_ids"},
                                       {"suppress_tokens"},
                                       {"begin_suppress_tokens"},
                                       {"sequence_bias"},
                                       {"forced_bos_token_id", -1},
                                       {"forced_eos_token_id", -1},
                                       {"dola_layers"},
                                       {"watermarking_config"},
                                       {"stop_strings"}};

bool StandsForNone(const Json& value, double none) {
  if (value.is_number()) return value.get<double>() == none;
  if (value.is_boolean()) return !value.get<bool>();
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The value of "license:" in the front matter of a README; nullopt without one.
std::optional<std::string> FrontMatterLicence(std::string_view text) {
  if (!text.starts_with("---\n") && !text.starts_with("---\r\n")) return std::nullopt;
  const size_t end = text.find("\n---", 3);
  std::string_view rest = text.substr(0, end);
  while (!rest.empty()) {
    const size_t line_end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    if (!line.starts_with("license:")) continue;
    line.remove_prefix(8);
    while (!line.empty() && (line.front() == ' ' || line.front() == '"')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '"' || line.back() == '\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty()) return std::string(line);
  }
  return std::nullopt;
}

class TextReader {
 public:
  TextReader(WatchedFolder& folder, const ModelFiles& model, FindingList* findings)
      : folder_(folder), model_(model), findings_(findings) {
    if (model.config.config.vocab > 0) vocab_ = model.config.config.vocab;
  }

  TextFiles Read() {
    ReadTokenizer();
    ReadTokenizerConfig();
    ReadTemplate();
    ReadStops();
    out_.licence = ReadLicence(folder_, findings_);
    return std::move(out_);
  }

 private:
  void Tell(std::string_view check, Code code, Locator where, std::string message) {
    findings_->Add(check, {.code = code, .message = std::move(message), .where = std::move(where)});
  }
  Locator At(const char* file, std::string pointer = "") const {
    return {.file = folder_.PathOf(file), .pointer = std::move(pointer)};
  }

  void ReadTokenizer() {
    if (!folder_.Has(kTokenizer)) {
      Tell("tokenizer-missing", Code::kNotFound, At(kTokenizer),
           "the folder has no tokenizer.json");
      return;
    }
    const auto document = folder_.ReadDocument(kTokenizer);
    if (!document) return;
    auto tokenizer = Tokenizer::FromJson(*document, folder_.PathOf(kTokenizer));
    if (!tokenizer.has_value()) {
      findings_->Add("tokenizer-broken", tokenizer.error());
      return;
    }
    tokenizer_ = std::move(*tokenizer);
    out_.tokens = tokenizer_->vocab_size();
    if (vocab_ && *out_.tokens > *vocab_) {
      Tell("tokenizer-vocabulary", Code::kMismatch, At(kTokenizer),
           "the tokenizer has " + std::to_string(*out_.tokens) + " ids, the model " +
               std::to_string(*vocab_));
    }
  }

  // A token's text: a string, or an object with its content.
  std::optional<std::string> TokenText(const Json& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_object() && value.contains("content") && value["content"].is_string()) {
      return value["content"].get<std::string>();
    }
    return std::nullopt;
  }

  void ReadTokenizerConfig() {
    if (!folder_.Has(kTokenizerConfig)) return;
    const auto document = folder_.ReadDocument(kTokenizerConfig);
    if (!document) return;
    if (document->contains("chat_template") && (*document)["chat_template"].is_string()) {
      inner_template_ = (*document)["chat_template"].get<std::string>();
    } else if (document->contains("chat_template") && (*document)["chat_template"].is_array()) {
      inner_template_ = "";  // several by name: present, and not compared
      several_templates_ = true;
    }
    if (!tokenizer_) return;
    for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
      if (!document->contains(key)) continue;
      const auto text = TokenText((*document)[key]);
      if (!text) continue;
      const auto id = tokenizer_->AddedTokenId(*text);
      if (!id) {
        Tell("special-token-unknown", Code::kMismatch, At(kTokenizerConfig, "/" + std::string(key)),
             "tokenizer.json has no added token \"" + *text + "\"");
      } else if (std::string_view(key) == "eos_token") {
        tokenizer_end_ = *id;
      }
    }
    const auto added = document->find("added_tokens_decoder");
    if (added == document->end() || !added->is_object()) return;
    for (const auto& [key, value] : added->items()) {
      const auto text = TokenText(value);
      const auto id = text ? tokenizer_->AddedTokenId(*text) : std::nullopt;
      if (!text || (id && std::to_string(*id) == key)) continue;
      Tell("special-token-unknown", Code::kMismatch,
           At(kTokenizerConfig, "/added_tokens_decoder" + PointerToken(key)),
           "tokenizer.json gives \"" + *text + "\" " +
               (id ? "the id " + std::to_string(*id) : std::string("no id")));
    }
  }

  void ReadTemplate() {
    std::optional<std::string> outer;
    if (folder_.Has(kTemplate)) {
      outer = folder_.ReadText(kTemplate);
      if (!outer) return;  // told already
    }
    if (outer && inner_template_ && !several_templates_ && *outer != *inner_template_) {
      Tell("chat-template-twice", Code::kMismatch, At(kTokenizerConfig, "/chat_template"),
           "the chat template is not the one in chat_template.jinja");
    }
    if (!outer && !inner_template_) {
      Tell("chat-template-missing", Code::kNotFound, At(kTemplate), "no file has a chat template");
      return;
    }
    if (several_templates_ && !outer) return;
    const std::string& text = outer ? *outer : *inner_template_;
    const Locator where = outer ? At(kTemplate) : At(kTokenizerConfig, "/chat_template");
    CheckTemplate(text, where);
  }

  void CheckTemplate(const std::string& text, const Locator& where) {
    if (text.find("{%") == std::string::npos && text.find("{{") == std::string::npos) {
      Tell("chat-template-broken", Code::kMalformed, where,
           "the chat template has no instruction in it");
      return;
    }
    ends_turns_ = text.find(kTurnEnd) != std::string::npos;
    if (!tokenizer_) return;
    // Tokens spelled <|name|>, each once.
    std::set<std::string> told;
    for (size_t at = text.find("<|"); at != std::string::npos; at = text.find("<|", at + 2)) {
      size_t end = at + 2;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
        ++end;
      }
      if (end == at + 2 || text.compare(end, 2, "|>") != 0) continue;
      const std::string token = text.substr(at, end + 2 - at);
      if (tokenizer_->AddedTokenId(token) || !told.insert(token).second) continue;
      Tell("chat-template-broken", Code::kMismatch, where,
           "the chat template writes " + token + ", which is no token of tokenizer.json");
    }
  }

  // Ranges outside which no sampler has a meaning for the value.
  void CheckSampling(const Json& generation) {
    const auto number = [&](const char* key, double low, double high) {
      const auto found = generation.find(key);
      if (found == generation.end() || found->is_null()) return true;
      const bool good =
          found->is_number() && found->get<double>() >= low && found->get<double>() <= high;
      if (good) return true;
      Tell("generation-value", found->is_number() ? Code::kOutOfRange : Code::kMalformed,
           At(kGeneration, PointerToken(key)), "found " + found->dump().substr(0, 40));
      return false;
    };
    number("temperature", 0.0, 100.0);
    number("top_p", 0.0, 1.0);
    number("min_p", 0.0, 1.0);
    number("top_k", 0.0, 1e9);
    const bool penalty = number("repetition_penalty", 1e-9, 100.0);
    for (const auto& [key, none] : kIgnored) {
      const auto found = generation.find(key);
      if (found == generation.end() || StandsForNone(*found, none)) continue;
      if (std::string_view(key) == "repetition_penalty" && !penalty) continue;  // told already
      Tell("generation-setting-ignored", Code::kUnsupported, At(kGeneration, PointerToken(key)),
           std::string(key) + " is " + found->dump(-1, ' ', true).substr(0, 40) +
               "; this engine draws by temperature, top_k, top_p and min_p alone");
    }
    if (!vocab_) return;
    for (const char* key : {"bos_token_id", "pad_token_id"}) {
      const auto found = generation.find(key);
      if (found == generation.end() || found->is_null()) continue;
      const bool good =
          found->is_number_unsigned() && found->get<uint64_t>() < static_cast<uint64_t>(*vocab_);
      if (good) continue;
      Tell("generation-value", found->is_number_integer() ? Code::kOutOfRange : Code::kMalformed,
           At(kGeneration, PointerToken(key)),
           "found " + found->dump().substr(0, 40) + ", expected an id below " +
               std::to_string(*vocab_));
    }
  }

  void ReadStops() {
    StopIds config_ids;
    StopIds generation_ids;
    bool readable = vocab_.has_value() && model_.document != nullptr;
    // A fault of these ids in config.json is told among those of the config.
    if (readable) {
      readable = AddStopIds(*model_.document, folder_.PathOf("config.json"), *vocab_, &config_ids)
                     .has_value();
    }
    if (!folder_.Has(kGeneration)) {
      Tell("generation-config-missing", Code::kNotFound, At(kGeneration),
           "the folder has no generation_config.json");
    } else if (const auto generation = folder_.ReadDocument(kGeneration); !generation) {
      readable = false;
    } else {
      CheckSampling(*generation);
      if (vocab_) {
        const Status added =
            AddStopIds(*generation, folder_.PathOf(kGeneration), *vocab_, &generation_ids);
        if (!added.has_value()) {
          findings_->Add("generation-value", added.error());
          readable = false;
        }
      }
    }
    if (readable) CompareStops(config_ids, generation_ids);
  }

  void CompareStops(const StopIds& config_ids, const StopIds& generation_ids) {
    std::set<int64_t> all;
    for (const StopIds* ids : {&config_ids, &generation_ids}) {
      for (const StopId& stop : ids->ids) {
        if (!all.insert(stop.id).second) continue;
        if (tokenizer_ && !tokenizer_->Contains(static_cast<int32_t>(stop.id))) {
          Tell("stop-id-without-token", Code::kMismatch, stop.stated_at.front(),
               "the stop id " + std::to_string(stop.id) + " is no id of the tokenizer, which has " +
                   std::to_string(*out_.tokens));
        }
      }
    }
    out_.stop_ids.assign(all.begin(), all.end());
    if (all.empty()) {
      Tell("no-stop-id", Code::kNotFound, At("config.json", "/eos_token_id"),
           "neither config.json nor generation_config.json states a stop id");
      return;
    }
    for (const StopId& stop : config_ids.ids) {
      if (generation_ids.ids.empty() || generation_ids.Contains(stop.id)) continue;
      Tell("stop-ids-differ", Code::kMismatch, stop.stated_at.front(),
           "the stop id " + std::to_string(stop.id) + " is not in generation_config.json");
    }
    if (tokenizer_end_ && !all.contains(*tokenizer_end_)) {
      Tell("stop-ids-differ", Code::kMismatch, At(kTokenizerConfig, "/eos_token"),
           "the tokenizer's end of sequence, id " + std::to_string(*tokenizer_end_) +
               ", is no stop id");
    }
    const auto turn_end = tokenizer_ ? tokenizer_->AddedTokenId(kTurnEnd) : std::nullopt;
    if (ends_turns_ && turn_end && !all.contains(*turn_end)) {
      Tell("chat-end-not-a-stop", Code::kMismatch, At(kGeneration, "/eos_token_id"),
           "the chat template ends turns with <|im_end|>, id " + std::to_string(*turn_end) +
               ", which is no stop id");
    }
  }

  WatchedFolder& folder_;
  const ModelFiles& model_;
  FindingList* findings_;
  std::optional<int64_t> vocab_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<int32_t> tokenizer_end_;
  std::optional<std::string> inner_template_;  // of tokenizer_config.json
  bool several_templates_ = false;
  bool ends_turns_ = false;
  TextFiles out_;
};

}  // namespace

std::optional<std::string> ReadLicence(WatchedFolder& folder, FindingList* findings) {
  std::optional<std::string> file;
  for (const std::string& name : folder.names()) {
    const std::string upper = Upper(name);
    const bool licence = upper.starts_with("LICENSE") || upper.starts_with("LICENCE") ||
                         upper.starts_with("COPYING");
    // Not read as a document: a finding of an unreadable licence would be graver than it is.
    const auto text = licence ? folder.Peek(name) : std::nullopt;
    if (text && !text->bytes().empty() && !file) file = name;
  }
  std::optional<std::string> stated;
  if (folder.Has(kReadme)) {
    const auto readme = folder.Peek(kReadme);
    if (readme) {
      const auto bytes = readme->bytes();
      stated = FrontMatterLicence({reinterpret_cast<const char*>(bytes.data()),
                                   std::min<size_t>(bytes.size(), size_t{1} << 20)});
    }
  }
  if (!file && !stated) {
    findings->Add("licence-missing",
                  {.code = Code::kNotFound,
                   .message = "no file states a licence: neither LICENSE nor README.md's license",
                   .where = {.file = folder.path()}});
  } else if (!file) {
    findings->Add("licence-file-missing",
                  {.code = Code::kNotFound,
                   .message = "README.md names the licence " + *stated + ", its text is not here",
                   .where = {.file = folder.PathOf("LICENSE")}});
  }
  return stated ? stated : file;
}

TextFiles ReadTextFiles(WatchedFolder& folder, const ModelFiles& model, FindingList* findings) {
  return TextReader(folder, model, findings).Read();
}

}  // namespace hallmark
