// Parses frames: the golden bytes, with which the TypeScript side is also tested. Each frame is also
// truncated at every byte, and parsed with every single bit flipped. Other tests parse random bytes.
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "session/hostile/scripted_peer.h"

namespace rdma_rpc::session::test {
namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t number(const std::string& text, int base = 10) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(number(hex.substr(i, 2), 16)));
  return bytes;
}

struct Golden {
  bool valid = false;
  std::string name, reason;
  Bytes bytes;
  std::map<std::string, std::string> fields;
  std::uint32_t u32(const std::string& field) const {
    const auto found = fields.find(field);
    return found == fields.end() ? 0 : static_cast<std::uint32_t>(number(found->second));
  }
};

/// Returns the lines of test/golden/frames.txt. The first comment of that file describes their format.
const std::vector<Golden>& golden() {
  static const std::vector<Golden> all = [] {
    std::vector<Golden> read;
    std::ifstream file(std::string(RDMA_RPC_GOLDEN_DIR) + "/frames.txt");
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string kind, hex;
      Golden entry;
      words >> kind >> entry.name >> hex;
      entry.valid = kind == "frame";
      entry.bytes = from_hex(hex);
      if (!entry.valid) std::getline(words >> std::ws, entry.reason);
      for (std::string field; entry.valid && words >> field;) {
        entry.fields[field.substr(0, field.find('='))] = field.substr(field.find('=') + 1);
      }
      read.push_back(std::move(entry));
    }
    return read;
  }();
  return all;
}

/// Parses one or more `address:length:key`, separated by commas.
std::vector<wire::ReplyBuffer> reply_buffers(const std::string& text) {
  std::vector<wire::ReplyBuffer> all;
  std::istringstream list(text);
  for (std::string item, addr, length, key; std::getline(list, item, ',');) {
    std::istringstream parts(item);
    std::getline(parts, addr, ':');
    std::getline(parts, length, ':');
    std::getline(parts, key, ':');
    all.push_back({number(addr, 16), static_cast<std::uint32_t>(number(length)),
                   static_cast<std::uint32_t>(number(key))});
  }
  return all;
}

Bytes slice(const Bytes& bytes, std::uint32_t offset, std::uint32_t count) {
  return {bytes.begin() + offset, bytes.begin() + offset + count};
}

std::string text_of(const Golden& entry, const std::string& field) {
  const auto found = entry.fields.find(field);
  return found == entry.fields.end() ? "" : found->second;
}

TEST(Wire, ReadsEveryGoldenFrame) {
  std::size_t frames = 0;
  for (const Golden& entry : golden()) {
    if (!entry.valid) continue;
    ++frames;
    SCOPED_TRACE(entry.name);
    wire::Frame frame;
    const char* why = wire::parse(entry.bytes.data(), static_cast<std::uint32_t>(entry.bytes.size()), frame);
    ASSERT_STREQ(why, nullptr);
    EXPECT_EQ(frame.header.type, entry.u32("type"));
    EXPECT_EQ(frame.header.flags, entry.u32("flags"));
    EXPECT_EQ(frame.header.credits, entry.u32("credits"));
    EXPECT_EQ(frame.header.call, entry.u32("call"));
    EXPECT_EQ(frame.header.method, entry.u32("method"));
    EXPECT_EQ(frame.header.timeout_us, entry.u32("timeout"));
    EXPECT_EQ(frame.total, entry.u32("total"));
    EXPECT_EQ(slice(entry.bytes, frame.metadata_offset, frame.metadata_bytes),
              from_hex(text_of(entry, "metadata")));
    EXPECT_EQ(slice(entry.bytes, frame.message_offset, frame.message_bytes + frame.inlined_bytes),
              from_hex(text_of(entry, "message")));
    if (const auto reply_buffer = reply_buffers(text_of(entry, "reply_buffer")); !reply_buffer.empty()) {
      EXPECT_EQ(frame.reply_buffer.addr, reply_buffer[0].addr);
      EXPECT_EQ(frame.reply_buffer.length, reply_buffer[0].length);
      EXPECT_EQ(frame.reply_buffer.rkey, reply_buffer[0].rkey);
    }
    const auto gather_entries = reply_buffers(text_of(entry, "gather_entries"));
    ASSERT_EQ(frame.gather_entry_count, gather_entries.size());
    for (std::uint32_t i = 0; i < frame.gather_entry_count; ++i) {
      const wire::GatherEntry gather_entry = wire::gather_entry_at(entry.bytes.data(), frame, i);
      EXPECT_EQ(gather_entry.addr, gather_entries[i].addr);
      EXPECT_EQ(gather_entry.length, gather_entries[i].length);
      EXPECT_EQ(gather_entry.rkey, gather_entries[i].rkey);
    }
  }
  EXPECT_GE(frames, 20u);
}

TEST(Wire, WritesEveryGoldenFrame) {
  for (const Golden& entry : golden()) {
    if (!entry.valid) continue;
    SCOPED_TRACE(entry.name);
    const auto flags = static_cast<std::uint8_t>(entry.u32("flags"));
    FrameBytes frame({static_cast<std::uint8_t>(entry.u32("type")), flags,
                      static_cast<std::uint16_t>(entry.u32("credits")), entry.u32("call"),
                      entry.u32("method"), entry.u32("timeout")});
    const Bytes metadata = from_hex(text_of(entry, "metadata")),
                message = from_hex(text_of(entry, "message"));
    if ((flags & wire::has_reply_buffer) != 0) frame.add(reply_buffers(text_of(entry, "reply_buffer"))[0]);
    if ((flags & wire::has_metadata) != 0) {
      frame.add(wire::MetadataLength{static_cast<std::uint32_t>(metadata.size()), 0});
    }
    if ((flags & wire::has_gather_list) != 0) {
      const auto gather_entries = reply_buffers(text_of(entry, "gather_entries"));
      frame.add(wire::GatherListHead{entry.u32("total"), static_cast<std::uint32_t>(gather_entries.size())});
      for (const wire::ReplyBuffer& gather_entry : gather_entries)
        frame.add(wire::GatherEntry{gather_entry.addr, gather_entry.length, gather_entry.rkey});
    }
    if ((flags & wire::written) != 0) frame.add(wire::Written{entry.u32("total"), 0});
    for (const Bytes& part : {metadata, message}) {
      for (const std::byte byte : part) frame.add(byte);
    }
    EXPECT_EQ(frame.bytes, entry.bytes);
  }
}

TEST(Wire, RefusesEveryMalformedFrameWithItsReason) {
  std::size_t frames = 0;
  for (const Golden& entry : golden()) {
    if (entry.valid) continue;
    ++frames;
    SCOPED_TRACE(entry.name);
    // The bytes are on the heap with their exact size, so that a sanitizer detects every byte that is read
    // beyond them.
    const Bytes exact(entry.bytes);
    wire::Frame frame;
    EXPECT_STREQ(wire::parse(exact.data(), static_cast<std::uint32_t>(exact.size()), frame),
                 entry.reason.c_str());
  }
  EXPECT_GE(frames, 50u);
}

/// Checks properties that hold for every valid frame.
void expect_sound(const Bytes& bytes) {
  wire::Frame frame;
  if (wire::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), frame) != nullptr) return;
  const std::uint64_t size = bytes.size();
  EXPECT_LE(std::uint64_t{frame.metadata_offset} + frame.metadata_bytes, size);
  EXPECT_LE(std::uint64_t{frame.message_offset} + frame.message_bytes + frame.inlined_bytes, size);
  EXPECT_LE(frame.gather_entry_count, kGatherEntriesMax);
  EXPECT_LE(frame.gather_entry_offset * (frame.gather_entry_count != 0) +
                std::uint64_t{frame.gather_entry_count} * sizeof(wire::GatherEntry),
            size);
  EXPECT_LE(frame.header.type, 7);
}

TEST(Wire, EveryTruncationOfAGoldenFrameIsSound) {
  for (const Golden& entry : golden()) {
    for (std::size_t size = 0; size <= entry.bytes.size(); ++size) {
      expect_sound(Bytes(entry.bytes.begin(), entry.bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

TEST(Wire, EveryFlippedBitOfAGoldenFrameIsSound) {
  for (const Golden& entry : golden()) {
    for (std::size_t bit = 0; bit < entry.bytes.size() * 8; ++bit) {
      Bytes bytes = entry.bytes;
      bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      expect_sound(bytes);
    }
  }
}

TEST(Wire, EveryTypeWithEveryFlagsIsReadOrRefused) {
  for (int type = 0; type < 256; ++type) {
    for (int flags = 0; flags < 256; ++flags) {
      for (const std::size_t size : {16u, 24u, 40u, 64u}) {
        expect_sound(
            FrameBytes({static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(flags), 0, 0, 1, 0})
                .pad(size - 16, std::byte{1})
                .bytes);
      }
    }
  }
}

TEST(Wire, GarbageIsReadOrRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes(random() % 96);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Half of the frames have a valid type.
    if (!bytes.empty() && i % 2 == 0) bytes[0] = static_cast<std::byte>(random() % 7);
    if (bytes.size() > 1 && i % 2 == 0) bytes[1] &= std::byte{0x3f};
    expect_sound(bytes);
  }
}

}  // namespace
}  // namespace rdma_rpc::session::test
