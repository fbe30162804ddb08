// Implements the handshake of a queue pair of shm-fd. One side connects to the other by a unix socket. Then
// each side sends the descriptors of its segments, and confirms that those of the peer are valid. Each side
// enters RTS when both have confirmed. See queue_pair.h, control_connection.h.
#include "fabric/shm/queue/queue_pair.h"

namespace rdma_rpc::fabric::shm {

std::string QueuePair::start_handshake(const AddressBlob& address, const std::string& path) {
  wanted_ = address;
  state_ = QpState::rtr;
  handshaking_ = true;
  cq_.note_handshake(1);
  control_ = std::make_unique<ControlConnection>(cq_.reactor(), *this);
  if (options_.active) {
    return control_->dial(path, wanted_.qp_token, own_word(), peer_word(),
                          device_.options().connect_timeout_ms);
  }
  if (early_connection_) welcome(early_connection_.release(), early_token_);
  return {};
}

/// Before connect() the expected peer is unknown, so the latest connection is kept until connect() names the
/// peer.
void QueuePair::take(UniqueFd fd, const Token& from) {
  if (state_ == QpState::init && !options_.active) {
    early_connection_ = ForeignFd(std::move(fd));
    early_token_ = from;
  } else {
    welcome(std::move(fd), from);
  }
}

/// A connection from an unexpected peer is answered with a refusal. Nothing else changes, because any process
/// may connect.
void QueuePair::welcome(UniqueFd fd, const Token& from) {
  if (handshaking_ && !shown_ && !options_.active && same(from, peer_word())) {
    return control_->welcome(std::move(fd), from, own_word());
  }
  const ConnectMessage answer = make_connect_message(ConnectKind::refused, from, token_);
  send_now(fd.get(), &answer, sizeof answer);
  close_elsewhere(std::move(fd));
}

void QueuePair::on_open() {
  shown_ = true;
  ++device_.counts().open_fds;
  FileNote note;
  note.kind = FileKind::device;
  note.bytes = sizeof(DeviceSegment);
  if (!control_->send(note, device_.fd())) return;
  note.kind = FileKind::queue_pair;
  note.bytes = segment_.map.bytes();
  if (control_->send(note, segment_.fd.get())) device_.show_all(*control_);
}

void QueuePair::on_file(const FileNote& note, ForeignFd file) {
  const std::string why = take_file(note, file.fd());
  if (!why.empty()) control_->refuse(why);
}

/// Returns "", or an error text when the descriptor is not valid.
std::string QueuePair::take_file(const FileNote& note, const UniqueFd& file) {
  std::string error;
  switch (note.kind) {
    case FileKind::device: {
      if (remote_) return "the peer has sent a second device segment";
      Mapping map = map_sent_memfd(file, sizeof(DeviceSegment), PeerMay::read, &error);
      if (map)
        remote_ = RemoteDevice::of_sent(
            wanted_, std::move(map), [this] { control_->receive(); }, &error);
      return error;
    }
    case FileKind::queue_pair: {
      if (!remote_ || peer_map_)
        return remote_ ? "the peer has sent a second queue pair"
                       : "the peer has sent its queue pair before its device";
      const std::size_t bytes = qp_segment_bytes(wanted_.receive_slots);
      Mapping map = map_sent_memfd(file, bytes, PeerMay::write, &error);
      if (map) error = claim(map.data(), wanted_);
      if (!error.empty()) return error;
      peer_map_ = std::move(map);
      if (control_->send(Note::taken)) finish_handshake();
      return {};
    }
    case FileKind::memory: {
      if (!remote_) return "the peer has sent a memory before its device";
      Mapping map = map_sent_memfd(file, note.bytes, PeerMay::write, &error);
      if (!map) return error;
      const bool taken = remote_->take_memory(note.slot, note.serial, note.addr, std::move(map));
      return taken ? ""
                   : "the peer has sent a memory that its device segment does not list, or more memory than "
                     "it may";
    }
  }
  return "the peer has sent a descriptor of an unknown kind";
}

void QueuePair::on_taken() {
  if (peer_has_taken_) return control_->refuse("the peer has confirmed the handshake twice");
  peer_has_taken_ = true;
  finish_handshake();
}

void QueuePair::finish_handshake() {
  if (!handshaking_ || !peer_has_taken_ || !peer_map_) return;
  stop_handshake();
  use_peer(wanted_, std::move(peer_map_), std::move(remote_));
  control_->cancel_timeout();
  state_ = QpState::rts;
}

void QueuePair::stop_handshake() {
  if (std::exchange(handshaking_, false)) cq_.note_handshake(-1);
}

/// When queue pairs are connected, the end of the sideband connection reports the end of a peer, as for peers
/// that are opened through /proc. The ring may still hold messages that the peer sent before it ended. When
/// the control connection is lost while both sides are alive, the queue pair must fail. Otherwise the sides
/// could no longer wake each other, nor learn of each other's new memory.
void QueuePair::on_lost(const std::string& why, bool peer_went) {
  if (state_ != QpState::rtr && (state_ != QpState::rts || peer_went)) return;
  error_ = "shm: the connection for descriptors: " + why;
  enter_error(SharedState::error);
}

}  // namespace rdma_rpc::fabric::shm
