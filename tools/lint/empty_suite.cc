// SPDX-License-Identifier: Apache-2.0
// A suite without a test. red_test.py demands that it fails; no gate runs it.
