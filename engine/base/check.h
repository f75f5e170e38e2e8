// SPDX-License-Identifier: Apache-2.0
// CHECK: aborts when an invariant of our own code is broken. Never reachable from bytes, files,
// devices or users; those get a Result.
#ifndef HALLMARK_ENGINE_BASE_CHECK_H_
#define HALLMARK_ENGINE_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // HALLMARK_ENGINE_BASE_CHECK_H_
