/**
 * The handlers. They work in the memory in which the request has arrived, and answer from it, so the server
 * copies no pixel.
 */
import { type Lease, leaseOf, RpcError, Status } from 'rdma-rpc';
import type { Batch, VisionHandlers } from './gen/tensor.rdma.ts';

/** Returns the number of images, of channels, and of pixels in one channel of one image. */
function sizes({ shape, pixels }: Batch): [images: number, channels: number, plane: number] {
  const [images = 0, channels = 0, rows = 0, columns = 0] = shape;
  if (shape.length !== 4 || images * channels * rows * columns !== pixels.length) {
    throw new RpcError(
      Status.INVALID_ARGUMENT,
      `${pixels.length} pixels are no batch of ${shape.join(' x ')}`,
    );
  }
  return [images, channels, rows * columns];
}

/**
 * Returns whether an array is a view of the lease's memory, aligned to 64 bytes. If so, nothing was copied on
 * the way.
 */
export function isInPlace(array: ArrayBufferView, lease: Lease | undefined): boolean {
  return lease !== undefined && array.buffer === lease.bytes.buffer && array.byteOffset % 64 === 0;
}

/**
 * Creates the handlers of the vision service. `watch` is called with true when the pixels of a request are in
 * place, and otherwise with false.
 */
export function visionHandlers(watch: (inPlace: boolean) => void): VisionHandlers {
  return {
    normalize(batch) {
      const [images, channels, plane] = sizes(batch);
      watch(isInPlace(batch.pixels, leaseOf(batch)));
      const mean = new Float64Array(channels);
      const deviation = new Float64Array(channels);
      for (let channel = 0; channel < channels; ++channel) {
        const planes = Array.from({ length: images }, (_, image) => {
          const from = (image * channels + channel) * plane;
          return batch.pixels.subarray(from, from + plane);
        });
        let sum = 0;
        let squares = 0;
        for (const pixels of planes) {
          for (const value of pixels) {
            sum += value;
            squares += value * value;
          }
        }
        const count = images * plane || 1;
        const average = sum / count;
        const spread = Math.sqrt(Math.max(squares / count - average * average, 0)) || 1;
        for (const pixels of planes)
          for (const [i, value] of pixels.entries()) pixels[i] = (value - average) / spread;
        mean[channel] = average;
        deviation[channel] = spread;
      }
      return { batch, mean, deviation };
    },

    async *brightness(batches) {
      for await (const batch of batches) {
        const [images, channels, plane] = sizes(batch);
        const lease = leaseOf(batch);
        watch(isInPlace(batch.pixels, lease));
        const values = new Float32Array(images);
        const size = channels * plane;
        for (let image = 0; image < images; ++image) {
          let sum = 0;
          for (const value of batch.pixels.subarray(image * size, (image + 1) * size)) sum += value;
          values[image] = sum / (size || 1);
        }
        // The frames are no longer needed, so their memory is made available for later frames.
        lease?.release();
        yield { values };
      }
    },
  };
}
