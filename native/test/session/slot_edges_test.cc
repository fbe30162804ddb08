// Tests frames of large messages whose metadata fills a slot. Nothing may be written beyond the slot.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "session/sides/pair.h"

namespace rdma_rpc::session::test {
namespace {

constexpr std::byte kUntouched{0x5a};

TEST(SlotEdges, MetadataThatFillsASlotStaysInItBesideALargeMessage) {
  for (const std::uint32_t short_of : {0u, 1u, 8u, 15u, 16u, 23u, 24u, 25u, 40u}) {
    SCOPED_TRACE(short_of);
    const PairOptions options = immediate();
    Pair pair(options);
    Context& context = *pair.client.context;
    const memory::BlockId block = context.arena().alloc(100'000);
    const std::int32_t slot = context.slots().take();
    ASSERT_TRUE(context.slots().valid(slot));
    std::byte* payload = context.slots().payload(static_cast<std::uint32_t>(slot));
    const std::byte* end = payload - kSlotHeadroom + context.slots().stride();
    const std::byte* slab_end = context.slots().data() + context.slots().bytes();
    ASSERT_LE(end, slab_end);
    const auto next_bytes = std::min<std::size_t>(kSlotHeadroom, static_cast<std::size_t>(slab_end - end));
    std::memset(const_cast<std::byte*>(end), static_cast<int>(kUntouched), next_bytes);
    BulkSubmission submission;
    submission.call = 0;
    submission.method = 7;
    submission.slot = static_cast<std::uint32_t>(slot);
    submission.metadata_bytes = options.context.slot_bytes - short_of;
    submission.gather_entries.push_back(
        {context.arena().at(block).data, 100'000, 0, false, nullptr, 0, nullptr});
    ASSERT_GT(pair.at_client().submit_bulk(std::move(submission)), 0);
    context.flush();
    for (std::size_t i = 0; i < next_bytes; ++i) ASSERT_EQ(end[i], kUntouched) << i;
    context.arena().release(block);
    pair.abandon_client();
    pair.abandon_server();
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test
