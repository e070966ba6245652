/**
 * Hadoop's filesystem over object stores through Laneway: {@link dev.laneway.hadoop.LanewayFileSystem} for FileSystem, {@link
 * dev.laneway.hadoop.LanewayFs} for FileContext.
 */
package dev.laneway.hadoop;
