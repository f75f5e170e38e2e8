// SPDX-License-Identifier: Apache-2.0
// ReplySet: all replies of one `hallmark run`, in the order of their prompts: queued, run to their
// end, told to the reader as they come and, when all is done, as JSON, faults and speed.
#ifndef HALLMARK_TOOLS_HALLMARK_REPLY_SET_H_
#define HALLMARK_TOOLS_HALLMARK_REPLY_SET_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "engine/run/session.h"
#include "tools/hallmark/replies.h"

namespace hallmark {

struct ReplySetOptions {
  bool json = false;     // nothing is told before all is done
  bool several = false;  // replies are told apart; a file of one prompt answers in the form of many
  double open_seconds = 0;
};

class ReplySet {
 public:
  // `session` outlives the set.
  ReplySet(Session& session, const ReplySetOptions& options)
      : session_(session), options_(options) {}
  ReplySet(const ReplySet&) = delete;
  ReplySet& operator=(const ReplySet&) = delete;

  // Queues all prompts, each asked as `request` asks; one that could never run is refused before
  // any runs.
  Status Submit(const GenerateRequest& request, std::vector<std::vector<int32_t>> prompts);
  // Until all are done or the reader is gone.
  Status RunAll();
  bool reader_gone() const { return printer_ && printer_->broken(); }

  // The faults of replies on stderr, and the worst of their exit codes.
  int ReportFaults() const;
  // Exit code: whether stdout took it.
  int PrintAsJson() const;
  // One line on stderr for who watches.
  void PrintSpeed() const;

 private:
  struct Reply {
    explicit Reply(const Tokenizer* tokenizer) : text(tokenizer) {}

    StreamId id = 0;
    size_t prompt_tokens = 0;
    ReplyText text;
    Generation generation;
    std::optional<Error> error;  // what ended this reply alone
  };

  nlohmann::json ToJson(const Reply& reply) const;
  double Tokens() const;
  // False ends the reply: the reader is gone, or the id cannot be decoded.
  bool Push(size_t index, int32_t id);
  void TakeFinished();

  Session& session_;
  ReplySetOptions options_;
  double seconds_ = 0;  // of all rounds
  std::vector<Reply> replies_;
  std::vector<size_t> waiting_;  // not taken yet, ascending
  std::optional<ReplyPrinter> printer_;
};

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_REPLY_SET_H_
