#!/usr/bin/env bash
# Table 2 of 000, in the order in which it is worth knowing. On one H200, at most an hour per line:
#   queues/longtail.sh --max-seconds 3600
# or an hour in all (what is under way is kept):
#   timeout 3600 queues/longtail.sh
# Options are those of rarefy run. What is in results/ is skipped, the same command goes on.
# Then: python docs/make.py longtail-table overtraining
set -u
options=("$@")
ended=0

# The next line runs whatever became of this one, except that Ctrl-C stops all. The script ends with
# 0 (all is done), 3 (a line is unfinished) or 1 (a line failed).
try() {
    "$@" --results results ${options[@]+"${options[@]}"}
    case $? in
    0) ;;
    3) [ "$ended" = 1 ] || ended=3 ;;
    130) exit 130 ;;
    *) ended=1 ;;
    esac
}

# the share that Algorithm 1 keeps, chosen on held-out training images
try rarefy run longtail-table --scale cifar10-keep-100

# first rows: rho = 100, 500 epochs
try rarefy run longtail-table --scale cifar10-rho100-500

# what masks do in short and in long trainings
try rarefy run longtail-table --scale cifar10-branches-100
try rarefy run longtail-table --scale cifar10-branches-500
try rarefy run longtail-table --scale cifar10-branches-2000
try rarefy run longtail-table --scale cifar10-rho100-100

# the other set
try rarefy run longtail-table --scale cifar100-keep-100
try rarefy run longtail-table --scale cifar100-rho100-500 --seeds 3

# the longest training without masks, and in further orders of the classes
try rarefy run longtail-table --scale cifar10-branches-free-2000
try rarefy run longtail-table --scale cifar10-rho100-2000 --seeds 3

# what it is about the mask
try rarefy run longtail-table --scale cifar100-controls-500
try rarefy run longtail-table --scale cifar100-controls-further-500

# what happens inside a training that is too long: a quarter of the images
try rarefy run longtail-overtraining --scale small-1000
try rarefy run longtail-overtraining --scale small-controls-1000 --seeds 5
try rarefy run longtail-overtraining --scale small-decay-1000

# methods under one protocol
try rarefy run longtail-table --scale cifar100-methods-500
try rarefy run longtail-table --scale cifar10-methods-500
try rarefy run longtail-table --scale cifar100-methods-further-500
try rarefy run longtail-table --scale cifar10-methods-further-500

# a stronger weight decay
try rarefy run longtail-table --scale cifar100-decay-500 --seeds 1
try rarefy run longtail-table --scale cifar10-decay-500 --seeds 1

# balanced controls of equal size
try rarefy run longtail-table --scale cifar10-control-500
try rarefy run longtail-table --scale cifar100-control-500

# accuracy over the share that is kept
try rarefy run longtail-table --scale cifar10-curve-200
try rarefy run longtail-table --scale cifar100-curve-200

# other imbalances
try rarefy run longtail-table --scale cifar10-rho10-500 --seeds 3
try rarefy run longtail-table --scale cifar10-rho50-500 --seeds 3
try rarefy run longtail-table --scale cifar10-rho1-500
try rarefy run longtail-table --scale cifar100-rho10-500
try rarefy run longtail-table --scale cifar100-rho50-500

# does the gain grow with the imbalance? (all of it stands in rows above)
try rarefy run longtail-table --scale cifar10-growth-500
try rarefy run longtail-table --scale cifar100-growth-500

# shorter and longer
try rarefy run longtail-table --scale cifar100-branches-100
try rarefy run longtail-table --scale cifar100-branches-500
try rarefy run longtail-table --scale cifar100-branches-2000
try rarefy run longtail-table --scale cifar100-branches-free-2000
try rarefy run longtail-table --scale cifar100-rho100-100
try rarefy run longtail-table --scale cifar10-rho100-1000
try rarefy run longtail-table --scale cifar100-rho100-1000
try rarefy run longtail-table --scale cifar10-rho10-1000
try rarefy run longtail-table --scale cifar10-rho50-1000
try rarefy run longtail-table --scale cifar10-rho1-1000
try rarefy run longtail-table --scale cifar100-rho10-1000
try rarefy run longtail-table --scale cifar100-rho50-1000
try rarefy run longtail-table --scale cifar100-rho100-2000
try rarefy run longtail-table --scale cifar10-rho10-2000
try rarefy run longtail-table --scale cifar10-rho50-2000
try rarefy run longtail-table --scale cifar10-rho1-2000
try rarefy run longtail-table --scale cifar100-rho10-2000
try rarefy run longtail-table --scale cifar100-rho50-2000

exit $ended
