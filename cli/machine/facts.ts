/**
 * The facts of `rdma-rpc info` and `doctor` that come from native code, which finds them by trying the
 * fabrics and devices. Other facts come from files of the system (machine.ts).
 */

import { firstSessionBytes, nativeOptions } from '../../runtime/boundary/contexts.ts';
import { whyNoDevice } from '../../runtime/control/verbs-devices.ts';
import { type FabricName, fabricNames, fabrics } from '../../runtime/fabrics.ts';
import {
  loadNative,
  type NativeModule,
  type VerbsCapabilities,
  type VerbsReport,
} from '../../runtime/native/native.ts';

export interface FabricFact {
  readonly name: FabricName;
  /** The reason why the fabric cannot be used; empty when it can be used. */
  readonly whyNot: string;
  /** Present for usable fabrics without devices; each device has capabilities of its own. */
  readonly capabilities?: VerbsCapabilities;
}

export interface Facts {
  /**
   * The reason why the addon does not load; empty when it loads. When the addon does not load, the other
   * fields are empty.
   */
  readonly whyNoAddon: string;
  readonly fabrics: readonly FabricFact[];
  readonly verbs: VerbsReport;
  /** Ciphers for sealed sessions; empty without libcrypto. */
  readonly ciphers: readonly string[];
  /** Bytes that a context and its first session register on a device. */
  readonly firstBytes: number;
}

const message = (error: unknown): string => (error as Error).message.replace(/^rdma-rpc: /, '');

function opened(native: NativeModule, name: FabricName): FabricFact {
  try {
    const context = native.createContext(nativeOptions(name));
    const { capabilities } = context;
    context.close();
    return { name, whyNot: '', capabilities };
  } catch (error) {
    return { name, whyNot: message(error) };
  }
}

export function factsHere(): Facts {
  const firstBytes = firstSessionBytes();
  const none: VerbsReport = { whyNone: '', whyNoCm: '', memlock: '', devices: [] };
  let native: NativeModule;
  try {
    native = loadNative();
  } catch (error) {
    return { whyNoAddon: message(error), fabrics: [], verbs: none, ciphers: [], firstBytes };
  }
  const verbs = native.verbsDevices(firstBytes);
  return {
    whyNoAddon: '',
    fabrics: fabricNames.map((name) =>
      fabrics[name].hasDevice
        ? { name, whyNot: whyNoDevice(verbs).replace(/^verbs is off: /, '') }
        : opened(native, name),
    ),
    verbs,
    ciphers: native.ciphers,
    firstBytes,
  };
}
