/**
 * Whether the verbs fabric is worth offering: what the RDMA devices of this machine say. Used by channels and
 * servers when they connect.
 */

import { firstSessionBytes } from '../boundary/contexts.ts';
import { clockMs } from '../clock.ts';
import { missingDeviceMs } from '../limits.ts';
import { loadNative, type VerbsReport } from '../native/native.ts';

/** Devices that could be used when last asked, '' for any. Kept, since asking opens them. */
const usable = new Set<string>();
/**
 * Why others could not, and until when that is believed: one may come, but not between two of a crowd of
 * connections, where to ask took a twentieth of the time of each.
 */
const missing = new Map<string, { readonly why: string; readonly untilMs: number }>();

/** Why no device can be used, or not the one that is named; '' when one can. */
export function whyNoDevice({ devices, whyNone }: VerbsReport, name = ''): string {
  const candidates = devices.filter((device) => name === '' || device.name === name);
  if (candidates.some(({ whyNot }) => whyNot === '')) return '';
  if (devices.length === 0) return whyNone;
  if (candidates.length === 0) {
    const names = devices.map((device) => device.name).join(', ');
    return `there is no RDMA device ${name} here, only ${names} (option verbs.device, or RDMA_RPC_DEVICE)`;
  }
  return candidates.map((device) => `${device.name}: ${device.whyNot}`).join('; ');
}

/** As above, for this machine. Throws when the addon is missing. */
export function whyNoVerbs(name = ''): string {
  if (usable.has(name)) return '';
  const known = missing.get(name);
  const nowMs = clockMs();
  if (known !== undefined && nowMs < known.untilMs) return known.why;
  const why = whyNoDevice(loadNative().verbsDevices(firstSessionBytes()), name);
  if (why === '') usable.add(name);
  else missing.set(name, { why, untilMs: nowMs + missingDeviceMs });
  return why;
}
