// SPDX-License-Identifier: Apache-2.0
// ContractId and ArithmeticId: the two names under which results may be compared. The contract is
// the list of clauses; an arithmetic is a backend's numeric definition under a contract. Two
// receipts of different arithmetic ids are not comparable, however alike they look.
#ifndef HALLMARK_RECEIPTS_EMIT_CONTRACT_H_
#define HALLMARK_RECEIPTS_EMIT_CONTRACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

struct ContractId {
  int64_t version = 0;
  std::string sha256;  // of the canonical text of docs/contract/clauses.json
};

// Of the contract this build carries. Aborts if that is not a contract: the build is broken then.
ContractId BuildContract();

// "cpu/<contract version>/<first 12 hex digits of the definition's digest>".
std::string CpuArithmeticId();
// "cuda/<contract version>/<first 12 hex digits>" of the definition's digest with the device's
// fingerprint (BackendDevice) behind it: devices that round alike share an id.
std::string CudaArithmeticId(const std::string& fingerprint);
// The ids that this build gives on every machine. A GPU's is known where the GPU is.
std::vector<std::string> ArithmeticIds();
// `fingerprint` is empty on the CPU. kUnsupported for a backend this build does not know.
Result<std::string> ArithmeticIdOf(const std::string& backend, const std::string& fingerprint);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_CONTRACT_H_
