// SPDX-License-Identifier: Apache-2.0
// A suite that skips. red_test.py demands that it fails; no gate runs it.
#include <gtest/gtest.h>

TEST(SkippingSuite, Skips) { GTEST_SKIP() << "nothing to see"; }
TEST(SkippingSuite, Passes) {}
