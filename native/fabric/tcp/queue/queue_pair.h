// A queue pair: one connection, from the address blobs to its end. What has a state of its own is a class:
// the queues of the user, the burst that is being sent, READs of the peer, what is coming, the path. The two
// states below and what they allow are one class in five files: queue_pair.cc (life and connection),
// posting.cc (what the user posts), sending.cc (frames out), receiving.cc (bytes in) and frames.cc (what each
// frame does). A frame that comes in owes an ack, answers or a refusal, and whatever is sent may end the
// connection for both directions, so two classes would call each other at every step. On the device's thread.
//
// Reading never waits for writing: whatever comes is carried out or refused at once and leaves at most a few
// words to say (an ack, kReadsMax answers, one refusal). So two sides that only write do not block each
// other.
//
// Two states say how the two directions of a connection in RTS stand. In ERR there is no socket.
//
//   In       | a frame comes | it may not be | the answers before | the peer says | the socket has
//            |               | carried out   | a refusal are out  | "gone"        | no more to read
//   ---------+---------------+---------------+--------------------+---------------+----------------
//   hears    | does it       | -> refuses    |                    | -> gone       | ERR
//   refuses  | waits unread  |               | -> deaf, or ERR    | waits unread  | waits unread
//   deaf     | thrown away   |               |                    | thrown away   | -> gone
//   gone     | no socket: the next request of this side fails, and then it is in ERR
//
//   Out      | the socket has no room | it has room again | it takes nothing any more
//   ---------+------------------------+-------------------+---------------------------
//   free     | -> blocked             |                   | -> broken
//   blocked  |                        | -> free           | (only a send tells)
//   broken   | In goes on until there is no more to read; `refuses` is over at once, as if it had been said
//
// A refusal of a message that found no receive leads to `deaf`, every other one to ERR.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/software/receive_ring.h"
#include "fabric/tcp/connect/dialer.h"
#include "fabric/tcp/connect/listener.h"
#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/burst.h"
#include "fabric/tcp/queue/completion_queue.h"
#include "fabric/tcp/queue/incoming.h"
#include "fabric/tcp/queue/path_watch.h"
#include "fabric/tcp/queue/peer_reads.h"
#include "fabric/tcp/queue/send_queue.h"

namespace rdma_rpc::fabric::tcp {

class QueuePair final : public fabric::QueuePair {
 public:
  QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, std::uint32_t qp_num,
            const Address& address);
  ~QueuePair() override;

  QpState state() const override { return state_; }
  std::vector<std::byte> local_address() const override { return encode(address_); }
  void set_first_words(const FirstWords& words) override { words_ = words; }
  std::string connect(std::span<const std::byte> remote_address) override;
  std::string error() const override { return error_; }
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  bool withdraw(std::uint32_t rkey) override;
  bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) override {
    sends_.abandon_reads(addr, bytes);
    return true;
  }
  std::uint64_t unsent_write_bytes() const override { return sends_.unsent_write_bytes(); }
  std::uint64_t read_bytes_arrived() const override { return read_bytes_arrived_; }
  /// One stream of bytes, and one ring of completions for what has come.
  bool may_hold_messages(std::uint64_t) const override { return false; }
  void to_error() override;

  const Token& token() const { return address_.token; }

  // For those who make the connection.
  /// Somebody has come for this queue pair.
  void take(Guest guest);
  void connected(UniqueFd fd);
  /// To ERR, for a reason that no completion tells.
  void fail(std::string why);

  // For the device.
  /// Whether what was sent arrives; ends the queue pair when it does not. Returns whether to look again.
  bool check_path(PathWatch::Clock::time_point now);
  bool asks_for_path() const { return path_.asks(); }

  // For the completion queue.
  /// `ends`: so does what can be read.
  void note_ready(bool readable, bool writable, bool ends);
  void turn();
  bool is_blocked() const { return out_ != Out::free; }
  void polled(bool receive, std::uint64_t send_end, std::uint32_t count);

 private:
  /// What is done with what comes. See the table above.
  enum class In : std::uint8_t { hears, refuses, deaf, gone };
  /// What the socket takes.
  enum class Out : std::uint8_t { free, blocked, broken };
  /// A request of the peer that is not carried out. It is sent behind the answers before it.
  struct Refusal {
    std::uint32_t number = 0;
    WcStatus status = WcStatus::success;   ///< for the peer
    WcStatus receive = WcStatus::success;  ///< of the oldest receive, when that is what fails
  };

  /// What a frame is, by priority: the first one of these that can go is the next one (next_frame()).
  enum class FrameKind : std::uint8_t {
    none,
    refusal,   ///< of a request of the peer
    ack,       ///< of requests of the peer
    question,  ///< a request without bytes, for its ack alone
    request,   ///< a whole small request, or one part of a larger one
    answer,    ///< one part of the answer to a READ of the peer
  };
  /// How the request stands that is next in the send queue.
  enum class Line : std::uint8_t {
    waits,      ///< the queue is empty, or its next request may not go yet
    small,      ///< it goes in one frame
    bulk,       ///< it goes in several frames, or in a long one, and none of them has gone
    under_way,  ///< some of its frames have gone: no other request may come between them
  };
  /// Whether an ack by itself is a reason for a frame: it can wait for one that takes it along.
  enum class LoneAck : std::uint8_t { now, later };
  /// The acks that are still to be sent or asked for.
  struct Acks {
    bool owed = false;      ///< to the peer
    bool wanted = false;    ///< a completion here is going to wait for requests before it: the next one asks
    bool question = false;  ///< it does wait, and nothing that is out asks
    bool asks() const { return wanted || question; }
    /// A request has asked.
    void asked() { wanted = question = false; }
  };

  // queue_pair.cc
  const Token& own_word() const { return words_ ? words_->own : address_.token; }
  void welcome(Guest guest);
  void turn_away(Guest guest);
  void lost(const std::string& why);
  void peer_is_gone();
  /// `last_word`: gone or bye; `refusal`: to be said before that.
  void enter_error(Op last_word, const Header* refusal = nullptr);
  void part(Op last_word, const Header* refusal = nullptr);
  void say_what_waits();
  void close_socket();
  void flush_queues();
  void wants_turn();

  // posting.cc
  bool gathers(std::span<const SendWr> posted);
  void carry_out_local();
  void retire();
  void complete_send(const SendSlot& slot, WcStatus status);
  void complete_receive(Wc wc);

  // sending.cc
  void flush();
  bool form();
  Line line();
  FrameKind next_frame(LoneAck ack);
  bool add(FrameKind kind);
  bool has_more(LoneAck ack) { return next_frame(ack) != FrameKind::none; }
  void add_request();
  void add_question();
  void add_answer();

  // receiving.cc
  /// A refusal is sent first: the rest of what comes can wait.
  bool may_read() const { return readable_ && (in_ != In::refuses || out_ == Out::broken); }
  void read();
  std::size_t landing(iovec* to);
  void take_bytes(const std::byte* from, std::size_t bytes);
  void landed(std::size_t bytes);

  // frames.cc
  void frame_begins();
  void frame_ends();
  /// Whether the frame may stand where it stands. Ends the connection when it may not.
  bool is_in_place();
  void send_begins();
  void send_ends();
  void write_begins();
  void write_ends();
  void read_asked();
  void data_begins();
  void data_ends();
  void carried_out();
  /// Whether what is left of the frame's bytes may be written where it says.
  bool may_be_written(std::uint64_t bytes) const;
  void refuse(std::uint32_t number, WcStatus status, WcStatus receive = WcStatus::success);
  void conclude_refusal();
  void broke_protocol(const char* how);

  Device& device_;
  CompletionQueue& cq_;
  const QpOptions options_;
  const Address address_;
  QpState state_ = QpState::init;
  std::string error_;

  // The connection.
  std::unique_ptr<Dialer> dialer_;
  class AcceptTimeout;
  std::unique_ptr<AcceptTimeout> accept_timeout_;  ///< passive: for the peer to come
  Guest guest_;                                    ///< came before connect() was called
  Token peer_{};                                   ///< what the peer calls itself
  std::optional<FirstWords> words_;
  UniqueFd socket_;
  bool enqueued_ = false;

  SendQueue sends_;
  software::ReceiveRing receives_;

  // Out.
  Burst burst_;
  PathWatch path_;
  Out out_ = Out::free;
  bool answer_next_ = false;  ///< of a bulk request and an answer that both wait
  Acks acks_;
  std::uint32_t gathered_ = 0;  ///< messages that wait for more, posted since the last flush()
  int send_error_ = 0;          ///< why it is broken
  PeerReads peer_reads_;
  Refusal refusal_;

  // In.
  In in_ = In::hears;
  bool readable_ = false;
  bool reads_to_end_ = false;  ///< the end of the connection has been announced: a short read is not the last
  Incoming incoming_;
  std::uint64_t read_bytes_arrived_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp
