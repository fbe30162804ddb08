/**
 * The client's calls: a batch of images back and forth, and a video whose brightness is returned for each
 * frame.
 */
import { allocBuffer, type Channel, createClient, leaseOf } from 'rdma-rpc';
import { float32 } from 'rdma-rpc/tensor';
import { VisionDefinition } from './gen/tensor.rdma.ts';
import { isInPlace } from './service.ts';

const [images, channels, rows, columns] = [8, 3, 64, 64] as const;
const pixelBytes = 4 * images * channels * rows * columns;

export interface Report {
  /** Whether the normalized pixels are a view of the memory that was provided for them. */
  readonly inPlace: boolean;
  /** The mean of the first channel, before and after the call. */
  readonly mean: number;
  readonly meanAfter: number;
  readonly labels: readonly number[];
  /** One value for each frame. */
  readonly brightness: readonly number[];
}

export async function callVision(channel: Channel): Promise<Report> {
  const client = createClient(VisionDefinition, channel);
  const shape = [images, channels, rows, columns];
  // This registered memory is written like any other memory. The server READs the pixels from it.
  using frame = allocBuffer(pixelBytes, channel);
  const pixels = float32(frame.bytes);
  for (let i = 0; i < pixels.length; ++i) pixels[i] = i % 256;
  const labels = Int32Array.from({ length: images }, (_, i) => i * i);

  // This is the memory into which the server WRITEs the answer. Without `into` the answer comes with a lease
  // of its own.
  using room = allocBuffer(pixelBytes + 4 * images, channel);
  const { batch, mean } = await client.normalize({ shape, pixels, labels }, { into: room });
  if (batch === undefined) throw new Error('an answer without a batch');
  const plane = batch.pixels.subarray(0, rows * columns);
  const report = {
    inPlace: isInPlace(batch.pixels, room),
    mean: mean[0] ?? Number.NaN,
    meanAfter: plane.reduce((sum, value) => sum + value, 0) / plane.length,
    labels: [...batch.labels],
  };

  const brightness: number[] = [];
  async function* video() {
    for (let i = 0; i < 4; ++i) yield { shape, pixels: new Float32Array(pixels.length).fill(i) };
  }
  for await (const scores of client.brightness(video())) {
    brightness.push(scores.values[0] ?? Number.NaN);
    leaseOf(scores)?.release();
  }
  return { ...report, brightness };
}
