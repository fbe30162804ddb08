/**
 * The curves of `npm run bench:scale`. Each curve is one load that grows in one dimension, for our peer and
 * the peers with which it is compared.
 */
import { load, mixed, type Scenario } from '../scenarios.ts';

const KiB = 1024;

export interface Point {
  /** Number of calls in flight, of connections, or of bytes. */
  readonly x: number;
  readonly scenario: Scenario;
}

export interface Curve {
  readonly name: string;
  readonly title: string;
  readonly axis: string;
  /**
   * Whether x counts bytes. If x counts bytes, a larger call may take longer: it may take the additional time
   * that its additional bytes need at the best rate.
   */
  readonly bytes: boolean;
  readonly points: readonly Point[];
}

const bytesText = (bytes: number): string => (bytes % KiB === 0 ? `${bytes / KiB}KiB` : `${bytes}B`);

function depth(inFlight: number): Point {
  return { x: inFlight, scenario: load('echo', '32B', 32, inFlight) };
}

function size(bytes: number): Point {
  return { x: bytes, scenario: load('echo', bytesText(bytes), bytes, 8) };
}

/**
 * Returns the point for this number of connections. All such points have the same number of calls in flight,
 * unless the connections are more: then each connection has one call in flight.
 */
function spread(sessions: number): Point {
  const scenario = load('echo', '32B', 32, Math.max(256, sessions));
  return { x: sessions, scenario: { ...scenario, name: `${scenario.name}-over-${sessions}`, sessions } };
}

function mix(bytes: number): Point {
  return { x: bytes, scenario: mixed(load('echo', '64B', 64, 32), 2, bytesText(bytes), bytes) };
}

export const curves: readonly Curve[] = [
  {
    name: 'depth',
    title: 'Calls in flight: echo of 32 B on one connection',
    axis: 'in flight',
    bytes: false,
    points: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map(depth),
  },
  {
    name: 'size',
    title: 'Sizes: echo, 8 in flight on one connection',
    axis: 'payload bytes',
    bytes: true,
    points: [
      ...[32, 64, 128, 200, 256, 512],
      ...[1, 2, 4].map((n) => n * KiB),
      ...[8000, 8193, 9 * KiB],
      ...[16, 32, 64, 128, 256, 1024].map((n) => n * KiB),
    ].map(size),
  },
  {
    name: 'sessions',
    title: 'Connections of one client process: echo of 32 B, 256 in flight, at least one on each',
    axis: 'connections',
    bytes: false,
    points: [1, 4, 16, 64, 256, 1000].map(spread),
  },
  {
    name: 'mix',
    title: 'Mixes: 64 B, and one call in five with more; 32 in flight on one connection',
    axis: 'bytes of the fifth call',
    bytes: true,
    points: [64, 1 * KiB, 4 * KiB, 8000, 9 * KiB, 16 * KiB, 64 * KiB, 128 * KiB, 512 * KiB].map(mix),
  },
];
