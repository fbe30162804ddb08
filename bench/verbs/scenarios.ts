/**
 * The measured scenarios between two devices. Each has several peers, whose figures are compared within one
 * run.
 */
import { bandwidth, type Devices, rcPingpong, sendLatency } from './perftest.ts';
import { type Exposure, type Load, type SessionFigures, session, type Wait } from './session.ts';

export interface Peer {
  name: string;
  /** Whether this is another figure of the first peer's run, by which no other figure must be divided. */
  sameRun?: boolean;
  /** Runs one round, and returns the figure in the scenario's unit. */
  measure(devices: Devices, scale: number): Promise<number>;
}

export interface Scenario {
  name: string;
  unit: 'us' | 'MiB/s';
  /** The number of times that a round runs the scenario, because short measurements vary more. */
  turns: number;
  /** The peers. The first one is this package. */
  peers: readonly Peer[];
}

const smallBytes = 64;
/**
 * The size of a call of `smallBytes` on the wire. A frame begins with a header (docs/wire/frames.md, section
 * 2).
 */
const frameBytes = smallBytes + 16;
const bulkBytes = 1 << 20;
const inFlight = 8;
/** Number of calls of one round in the emulated guest. A real device makes `scale` times as many calls. */
const pollCalls = 2000;
/**
 * Two spinners on two CPUs are half as fast when the host puts both on one core, and that lasts for the life
 * of a process. Therefore the scenario has many short runs.
 */
const pollTurns = 5;
const eventCalls = 400;
const bulkCalls = 48;
const besideCalls = 1000;
const echoCalls = 300;
const KiB = 1024;

/** Measures half a call, as perftest counts half a round trip. */
function halfCall(name: string, wait: Wait, calls: number): Peer {
  return {
    name,
    measure: async (devices, scale) =>
      (await session(devices, 'pingpong', wait, 'window', calls * scale)).callUs / 2,
  };
}

/**
 * Sleeps between completions, as the other end of perftest does. In a guest with two CPUs a spinner takes one
 * CPU from the driver.
 */
function bulk(name: string, load: Load, exposure: Exposure): Peer {
  return {
    name,
    measure: async (devices, scale) =>
      (await session(devices, load, 'events', exposure, bulkCalls * scale)).bytesPerSecond / 2 ** 20,
  };
}

function sendLat(name: string, bytes: number, calls: number, events: boolean): Peer {
  return {
    name: events ? `${name} -e` : name,
    measure: (devices, scale) => sendLatency(devices, bytes, calls * scale, events),
  };
}

function pingpong(name: string, wait: Wait, calls: number): Scenario {
  const events = wait === 'events';
  return {
    name,
    unit: 'us',
    turns: events ? 1 : pollTurns,
    peers: [
      halfCall('session', wait, calls),
      sendLat('ib_send_lat', smallBytes, calls, events),
      ...(events ? [] : [sendLat(`ib_send_lat, ${frameBytes} B`, frameBytes, calls, events)]),
      {
        name: events ? 'ibv_rc_pingpong -e' : 'ibv_rc_pingpong',
        measure: (devices, scale) => rcPingpong(devices, smallBytes, calls * scale, events),
      },
    ],
  };
}

function transfer(name: string, load: Load, program: 'ib_read_bw' | 'ib_write_bw'): Scenario {
  return {
    name,
    unit: 'MiB/s',
    turns: 1,
    peers: [
      bulk('session', load, 'window'),
      bulk('session, no windows', load, 'shared'),
      {
        name: program,
        measure: (devices, scale) => bandwidth(program, devices, bulkBytes, bulkCalls * scale, inFlight),
      },
    ],
  };
}

/**
 * Measures a small call while 16 MiB are moved for another call, and a small call alone, as whole calls. The
 * percentiles are those of one run.
 */
function beside(name: string, load: Load): Scenario {
  const run = (of: Load, devices: Devices, scale: number): Promise<SessionFigures> =>
    session(devices, of, 'poll', 'window', besideCalls * scale);
  // The first peer of a round runs it.
  let round: Promise<SessionFigures>;
  return {
    name,
    unit: 'us',
    turns: 1,
    peers: [
      {
        name: 'session, p50',
        async measure(devices, scale) {
          round = run(load, devices, scale);
          return (await round).callUs;
        },
      },
      { name: 'session, p99', sameRun: true, measure: async () => (await round).p99Us },
      { name: 'alone, p50', measure: async (...where) => (await run('pingpong', ...where)).callUs },
    ],
  };
}

/**
 * Measures whole calls, one at a time. One peer sends their messages in SENDs, and the other peer sends them
 * by READ and WRITE. The size up to which SENDs cost less determines the limit of segments
 * (Capabilities::segmented_bytes).
 */
function echo(name: string, bytes: number): Scenario {
  const peer = (peerName: string, load: Load): Peer => ({
    name: peerName,
    measure: async (devices, scale) =>
      (await session(devices, load, 'poll', 'window', echoCalls * scale, bytes)).callUs,
  });
  return {
    name,
    unit: 'us',
    turns: 1,
    peers: [peer('session, SENDs', 'echo-sent'), peer('session, READ and WRITE', 'echo-moved')],
  };
}

export const scenarios: readonly Scenario[] = [
  pingpong('pingpong-64B-poll', 'poll', pollCalls),
  pingpong('pingpong-64B-events', 'events', eventCalls),
  transfer('read-1MiB-x8', 'read', 'ib_read_bw'),
  transfer('write-1MiB-x8', 'write', 'ib_write_bw'),
  beside('64B-beside-read-16MiB', 'beside-read'),
  beside('64B-beside-write-16MiB', 'beside-write'),
  echo('echo-8000B', 8000),
  echo('echo-9KiB', 9 * KiB),
  echo('echo-16KiB', 16 * KiB),
  echo('echo-32KiB', 32 * KiB),
];
