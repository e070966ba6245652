#!/bin/sh
# Runs one part of a plan in each task of a Slurm job array. A plan of 500 parts, 32 of them at a time:
#
#   job=$(sbatch --parsable --array=0-499%32 slurm.sh s3://my-bucket/plans/1)
#   sbatch --dependency="afterany:$job" slurm.sh s3://my-bucket/plans/1
#
# The second job isn't an array. It runs the parts whose tasks have died, and then verifies the plan. For parts beyond the cluster's
# MaxArraySize, give the number of the array's first part: `sbatch --array=0-999 slurm.sh DIR 1000`.
#SBATCH --job-name=laneway-plan
#SBATCH --cpus-per-task=2
#SBATCH --mem=512M
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
set -eu
dir=$1
first=${2:-0}

# `exec` lets Slurm's signal reach Laneway, which then gives up its part. Another task can take it at once.
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    exec laneway plan run --part $((first + SLURM_ARRAY_TASK_ID)) "$dir"
fi
laneway plan run "$dir"
exec laneway plan verify "$dir"
