// SPDX-License-Identifier: Apache-2.0
// Cases of clause mapped-equals-device: rows of the checkpoint's embedding, the first id and the
// last among them, read through the session's own table, one in host memory and one in device
// memory, each against the checkpoint's bytes. For backends with DeviceChecks.
#ifndef HALLMARK_CONFORMANCE_CASES_MAPPED_EQUALS_DEVICE_H_
#define HALLMARK_CONFORMANCE_CASES_MAPPED_EQUALS_DEVICE_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddMappedEqualsDeviceCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_MAPPED_EQUALS_DEVICE_H_
