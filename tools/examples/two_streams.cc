// SPDX-License-Identifier: Apache-2.0
// An example: two prompts share the rounds of one session, drafted if there is a drafter. Prints
// each id as it comes, then what each reply took. Usage: two_streams DIR [DRAFTER]
#include <cstdio>

#include "engine/run/session.h"

using hallmark::Generation;
using hallmark::Session;
using hallmark::Status;

namespace {

Status Run(const char* directory, const char* drafter) {
  const std::unique_ptr<Session> session =
      TRY(Session::Open(directory, {.drafter = drafter, .streams = 2}));
  const std::vector<int32_t> prompts[2] = {{57, 318, 262}, {101, 102, 103, 104, 105}};
  hallmark::StreamId streams[2];
  for (int i = 0; i < 2; ++i) {
    hallmark::GenerateRequest request{.prompt = prompts[i], .max_tokens = 32};
    request.sampling = {.temperature = 0.7, .seed = 1};
    request.on_token = [i](int32_t id) {
      return std::printf("stream %d: %d\n", i, id) > 0;  // false would end this stream
    };
    streams[i] = TRY(session->Submit(std::move(request)));
  }
  while (TRY(session->Round())) {
  }
  for (int i = 0; i < 2; ++i) {
    const Generation reply = TRY(session->Take(streams[i]));
    std::printf("stream %d took %lld rounds for %zu tokens; %lld of %lld drafts were right\n", i,
                static_cast<long long>(reply.rounds), reply.ids.size(),
                static_cast<long long>(reply.accepted), static_cast<long long>(reply.drafted));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fputs("usage: two_streams DIR [DRAFTER]\n", stderr);
    return 2;
  }
  const Status status = Run(argv[1], argc == 3 ? argv[2] : "");
  if (status.has_value()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}
