// SPDX-License-Identifier: Apache-2.0
// Key files: one line, the kind of key and its 32 bytes in base64. A secret key is written readable
// by its owner alone, and no key file is ever written over.
#ifndef HALLMARK_RECEIPTS_VERIFY_KEY_FILE_H_
#define HALLMARK_RECEIPTS_VERIFY_KEY_FILE_H_

#include <string>

#include "engine/base/result.h"
#include "receipts/verify/dsse.h"

namespace hallmark::verify {

struct KeyPaths {
  std::string secret;  // PREFIX.key
  std::string open;    // PREFIX.pub
};

// Makes a key and writes both files, or neither. kIo when one is there already or cannot be
// written.
Result<KeyPaths> WriteNewKey(const std::string& prefix);

// kMalformed for another form; kUnsupported for a secret key that others may read.
Result<SecretKey> ReadSecretKey(const std::string& path);
Result<PublicKey> ReadPublicKey(const std::string& path);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_KEY_FILE_H_
