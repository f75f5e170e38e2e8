// SPDX-License-Identifier: Apache-2.0
// What a drafter adds to a memory plan: its weights as they are held, the scratch of a DraftPass,
// and the context of each stream. From headers and the config alone.
#ifndef HALLMARK_ENGINE_DRAFT_DRAFTER_PLAN_H_
#define HALLMARK_ENGINE_DRAFT_DRAFTER_PLAN_H_

#include "engine/draft/drafter_options.h"
#include "engine/format/drafter_inventory.h"
#include "engine/model/memory_plan.h"

namespace hallmark {

// `target_head` is the head that its drafts go through; absent: the embedding. kOutOfRange for a
// draft vocabulary that is not one.
Result<DrafterMemory> PlanDrafter(const DrafterInventory& inventory, const DrafterConfig& config,
                                  const DrafterOptions& options,
                                  const std::optional<LinearSource>& target_head);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFTER_PLAN_H_
