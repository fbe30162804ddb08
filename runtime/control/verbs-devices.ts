/**
 * Decides whether to offer the verbs fabric, by the RDMA devices of this machine. Used by channels and
 * servers when they connect.
 */

import { firstSessionBytes } from '../boundary/contexts.ts';
import { clockMs } from '../clock.ts';
import { missingDeviceMs } from '../limits.ts';
import { loadNative, type VerbsReport } from '../native/native.ts';

/** Devices that were usable at the last check, '' for any device. Cached, since the check opens them. */
const usable = new Set<string>();
/**
 * Why other devices were not usable, and until when that is cached. A device may appear later, but checking
 * again for each of many connections took a twentieth of their time.
 */
const missing = new Map<string, { readonly why: string; readonly untilMs: number }>();

/**
 * Returns whether the option `device` names this device: by its name, a pattern with `*` and `?`, or a list
 * of these with commas. The verbs plug-in has the same rules (native/fabric/verbs/open.cc).
 */
function isNamed(option: string, device: string): boolean {
  return option.split(',').some((pattern) => {
    const literal = pattern.replaceAll(/[\\^$.+()[\]{}|]/g, '\\$&');
    return new RegExp(`^${literal.replaceAll(/\*+/g, '.*').replaceAll('?', '.')}$`).test(device);
  });
}

/** Returns why no device, or not the named one, can be used; '' when one can. */
export function whyNoDevice({ devices, whyNone }: VerbsReport, name = ''): string {
  const candidates = devices.filter((device) => name === '' || isNamed(name, device.name));
  if (candidates.some(({ whyNot }) => whyNot === '')) return '';
  if (devices.length === 0) return whyNone;
  if (candidates.length === 0) {
    const names = devices.map((device) => device.name).join(', ');
    return `there is no RDMA device ${name} here, only ${names} (option verbs.device, or RDMA_RPC_DEVICE)`;
  }
  return candidates.map((device) => `${device.name}: ${device.whyNot}`).join('; ');
}

/** Returns the same for this machine. Throws when the addon is missing. */
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
